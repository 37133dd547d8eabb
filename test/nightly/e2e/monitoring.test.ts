/**
 * A real Prometheus scrapes a real replica, with the rules and the dashboard that we ship: every
 * metric is in docs/reference/metrics.md and the other way round, and every expression has data.
 */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parse } from 'yaml'
import { blocksOf } from '../../../tools/markdown.ts'
import { metricsByName } from '../../../tools/monitoring/catalogue.ts'
import { expressionOf, ROWS } from '../../../tools/monitoring/dashboard.ts'
import { readExpression, seriesOf } from '../../../tools/monitoring/promql.ts'
import { eventually } from '../../support/eventually.ts'
import { MonitoredServer } from '../../support/monitored-server.ts'
import { Prometheus, promtool } from '../../support/prometheus.ts'

const alertsFile = join(import.meta.dirname, '../../../monitoring/alerts.yaml')
const howTo = join(import.meta.dirname, '../../../docs/how-to/monitor.md')
const catalogue = metricsByName()
/** Panels whose series exist only after something has gone wrong, or had to wait. */
const EMPTY_WHEN_WELL = [
  'Server errors and lost clients',
  'Wait for a slot, 99th percentile',
  'Failed requests to the cluster',
]

interface Targets {
  readonly activeTargets: readonly { readonly health: string; readonly lastError: string }[]
}

interface EvaluatedRule {
  readonly name: string
  readonly health: string
  readonly lastError?: string
}

interface RuleGroups {
  readonly groups: readonly { readonly rules: readonly EvaluatedRule[] }[]
}

describe('a real Prometheus', () => {
  const rest = new AsyncDisposableStack()
  let monitored: MonitoredServer
  let prometheus: Prometheus
  let isOver = false
  let clients: Promise<void>

  before(async () => {
    monitored = await MonitoredServer.start(rest)
    prometheus = rest.use(await Prometheus.start(await configOf(monitored)))
    clients = keepUsing()
    await eventually('the replica is scraped, and used', hasData, 20_000)
  })

  after(async () => {
    isOver = true
    await clients
    await rest.disposeAsync()
  })

  async function keepUsing(): Promise<void> {
    while (!isOver) {
      await monitored.use().catch(() => undefined)
      await sleep(200)
    }
  }

  /** Rates need two scrapes after the first count of each series. */
  async function hasData(): Promise<boolean> {
    const scrapes = await prometheus.query('min(count_over_time(up[1m]))')
    const refused = 'sum(rate(apiserver_request_total{resource="events",code="429"}[5s])) > 0'
    const mirrored = 'tidings_mirror_state{state="Following"}'
    const all = [scrapes, await prometheus.query(refused), await prometheus.query(mirrored)]
    return Number(scrapes[0]?.value[1]) >= 5 && all.every(({ length }) => length > 0)
  }

  test('exposition and page of metrics have the same metrics, types, labels and help', async () => {
    const pages = await Promise.all(
      ['/metrics', '/metrics/slis'].map(async (path) => (await monitored.server.ask(path)).body),
    )
    for (const page of pages) await promtool(['check', 'metrics'], page)
    const exposed = readExposition(pages.join('\n'))
    assert.deepEqual([...exposed.keys()].sort(), [...catalogue.keys()].sort())
    for (const { name, type, help, labels } of catalogue.values()) {
      const shown = exposed.get(name)
      assert.equal(`${shown?.type} ${shown?.help}`, `${type} ${help}`, name)
      const others = [...(shown?.labels ?? [])].filter((label) => !labels.includes(label))
      assert.deepEqual(others, [], `${name} has labels that its definition does not name`)
    }
  })

  test('both paths are scraped over TLS with the token and the role of deploy/roles', async () => {
    const { activeTargets } = await prometheus.get<Targets>('targets?state=active')
    const states = activeTargets.map(({ health, lastError }) => `${health} ${lastError}`)
    assert.deepEqual(states, ['up ', 'up '])
    const dropped = (await prometheus.ownMetrics())
      .split('\n')
      .filter((line) => /^prometheus_target_scrapes_sample_\w+_total /.test(line))
    assert.ok(dropped.length >= 3)
    assert.deepEqual(
      dropped.filter((line) => !line.endsWith(' 0')),
      [],
    )
  })

  test('every rule is evaluated without an error, and has series to look at', async () => {
    const evaluated = async (): Promise<readonly EvaluatedRule[]> => {
      const { groups } = await prometheus.get<RuleGroups>('rules')
      return groups.flatMap(({ rules }) => rules)
    }
    await eventually('all rules are evaluated', async () =>
      (await evaluated()).every(({ health }) => health !== 'unknown'),
    )
    const failed = (await evaluated()).filter(({ health }) => health !== 'ok')
    assert.deepEqual(failed, [])
    const rules: { expr: string }[] = parse(await readFile(alertsFile, 'utf8')).groups.flatMap(
      (group: { rules: object[] }) => group.rules,
    )
    const names = new Set(
      rules.flatMap(({ expr }) => readExpression(expr).selectors.map(({ series }) => series)),
    )
    const missing: string[] = []
    for (const name of names) {
      if ((await prometheus.query(`${name}{job="tidings"}`)).length === 0) missing.push(name)
    }
    assert.deepEqual(missing, [])
  })

  test('requests are counted as neither failed nor slow, and no alert pages', async () => {
    for (const share of ['request_errors', 'request_slow']) {
      const [sample] = await prometheus.query(`tidings:${share}:ratio_rate5m`)
      assert.equal(sample?.value[1], '0', share)
    }
    assert.deepEqual(await prometheus.query('ALERTS{severity="critical"}'), [])
  })

  test('every panel of the dashboard has data', async () => {
    const known = seriesOf(catalogue.values())
    const empty: string[] = []
    for (const { title, queries } of ROWS.flatMap(({ panels }) => panels)) {
      let count = 0
      for (const query of queries) {
        const expression = expressionOf(query, known)
          .replaceAll('$job', 'tidings')
          .replaceAll('$instance', '.*')
          .replaceAll('$__rate_interval', '10s')
        count += (await prometheus.query(expression)).length
      }
      if (count === 0) empty.push(title)
    }
    assert.deepEqual(empty, EMPTY_WHEN_WELL)
  })

  test('alerts fire when the replica is killed', async () => {
    monitored.server.kill('SIGKILL')
    const firing =
      'ALERTS{alertname=~"TidingsAbsent|TidingsDown",alertstate="firing",job="tidings"}'
    const names = async () =>
      (await prometheus.query(firing)).map(({ metric }) => metric['alertname'])
    await eventually('both fire', async () => (await names()).length === 2, 15_000)
    assert.deepEqual((await names()).sort(), ['TidingsAbsent', 'TidingsDown'])
  })
})

/** The configuration of docs/how-to/monitor.md, with our files, and seconds instead of minutes. */
async function configOf({ server }: MonitoredServer): Promise<string> {
  const rules = (await readFile(alertsFile, 'utf8')).replaceAll(/^( +)for: \S+$/gm, '$1for: 1s')
  const path = (name: string): string => join(server.folder, name)
  await writeFile(path('alerts.yaml'), rules)
  await writeFile(path('tidings-token'), 'prometheus')
  const [block] = blocksOf(await readFile(howTo, 'utf8')).filter(
    ({ language }) => language === 'yaml',
  )
  const config = parse(
    (block?.text ?? '')
      .replaceAll('/etc/prometheus/tidings-ca.crt', path('tidings.crt'))
      .replaceAll('/etc/prometheus/tidings-token', path('tidings-token'))
      .replace('[alerts.yaml]', `[${path('alerts.yaml')}]`)
      .replace(/targets: \[.*\]/, `targets: ["127.0.0.1:${server.port}"]`),
  )
  const [job] = config.scrape_configs
  return JSON.stringify({
    ...config,
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    scrape_configs: [job, { ...job, job_name: 'tidings-slis', metrics_path: '/metrics/slis' }],
  })
}

interface Exposed {
  readonly type: string
  readonly help: string
  readonly labels: Set<string>
}

/** The metrics of a page in Prometheus' text format, without `le`. */
function readExposition(page: string): ReadonlyMap<string, Exposed> {
  const helps = new Map<string, string>()
  const metrics = new Map<string, Exposed>()
  for (const line of page.split('\n')) {
    const [, word, of = '', what = ''] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? []
    if (word === 'HELP') helps.set(of, what.replaceAll('\\\\', '\\'))
    if (word === 'TYPE')
      metrics.set(of, { type: what, help: helps.get(of) ?? '', labels: new Set() })
    const [, series = '', labels = ''] = /^([a-z]\w*)\{(.*)\} \S+$/.exec(line) ?? []
    const metric = metrics.get(series) ?? metrics.get(series.replace(/_(bucket|sum|count)$/, ''))
    const names = labels.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').matchAll(/(\w+)=/g)
    for (const [, name = ''] of names) if (name !== 'le') metric?.labels.add(name)
  }
  return metrics
}
