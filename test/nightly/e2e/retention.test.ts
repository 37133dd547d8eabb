/** A retention policy from its file, through the built program. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { runToEnd, Tidings } from '../../support/tidings.ts'
import { makeEvent } from '../../support/wire-event.ts'
import { KubectlSession, RECORDED_WITH, whyNot } from '../kubectl/kubectl.ts'

const HEAD = 'apiVersion: tidings.dev/v1alpha1\nkind: RetentionPolicy\n'
const EVENTS = '/apis/events.k8s.io/v1/namespaces/shop/events'
const WINDOWS = '/apis/tidings.dev/v1alpha1/namespaces/shop/retentionwindows'
const AS_ADA = { authorization: 'Bearer ada-token' }

describe('the retention policy of a running server', () => {
  let folder: string
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-retention-'))
  })
  after(() => rm(folder, { recursive: true }))

  const write = async (name: string, text: string): Promise<string> => {
    const path = join(folder, name)
    await writeFile(path, text, { mode: 0o600 })
    return path
  }

  test('a wrong file fails the start, and the log names the flag, the file and the field', async () => {
    const path = await write('wrong.yaml', `${HEAD}rules: [{type: Warning, lifetime: soon}]\n`)
    const { code, stderr } = await runToEnd([
      '--etcd-servers=http://127.0.0.1:1',
      `--cert-dir=${folder}/certs`,
      `--retention-policy-file=${path}`,
    ])
    assert.equal(code, 1)
    assert.ok(stderr.includes('--retention-policy-file'), stderr)
    assert.ok(stderr.includes('wrong.yaml: rules[0].lifetime: '), stderr)
  })

  test('rules, budgets and their changes apply, and are shown', async () => {
    await using etcd = await startEtcd()
    const policy = await write('policy.yaml', `${HEAD}rules: [{type: Warning, lifetime: 7d}]\n`)
    const tokens = await write('tokens.csv', 'ada-token,ada,1,"system:masters"\n')
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--retention-policy-file=${policy}`,
      `--token-auth-file=${tokens}`,
      '--event-ttl=6h',
    ])
    await server.until('/readyz', ({ status }) => status === 200, 20_000)
    const create = async (name: string, type: string) => {
      const body = JSON.stringify({ ...makeEvent('shop', name), type })
      const headers = { ...AS_ADA, 'content-type': 'application/json' }
      const { status } = await server.ask(EVENTS, { method: 'POST', headers, body })
      assert.equal(status, 201)
    }
    for (let at = 0; at < 20; at++) await create(`n${at}`, 'Normal')
    for (let at = 0; at < 3; at++) await create(`w${at}`, 'Warning')
    const listed = await server.ask(EVENTS, { headers: AS_ADA })
    const names = ({ body }: { body: string }): readonly string[] =>
      JSON.parse(body).items.map(({ metadata }: { metadata: { name: string } }) => metadata.name)
    assert.equal(names(listed).length, 23)
    assert.match(String(listed.headers['tidings-window']), /^\d{4}-\d\d-\d\dT/)
    const window = async () => {
      const { body } = await server.ask(WINDOWS, { headers: AS_ADA })
      return JSON.parse(body).items[0]
    }
    const lifetimes = [
      { rule: 'warnings', selects: 'Warning', lifetime: '7d' },
      { rule: 'default', selects: '', lifetime: '6h' },
    ]
    assert.deepEqual((await window()).lifetimes, [
      { ...lifetimes[0], rule: 'rule-1' },
      lifetimes[1],
    ])

    const rules = 'rules: [{name: warnings, type: Warning, lifetime: 7d}]\n'
    await write('policy.yaml', `${HEAD}${rules}budgets: [{per: Namespace, events: 10}]\n`)
    const left = async () => names(await server.ask(EVENTS, { headers: AS_ADA }))
    await eventually('the budget holds', async () => (await left()).length === 10, 15_000)
    assert.equal((await left()).filter((name) => name.startsWith('w')).length, 3)
    const shown = await window()
    assert.deepEqual(
      [shown.events, shown.evicted, shown.budget, shown.lifetimes],
      [10, 13, { name: 'budget-1', events: 10 }, lifetimes],
    )
    await write('policy.yaml', `${HEAD}rules: [{type: Normal, lifetime: 1s}]\n`)
    await eventually('Normals expire', async () => (await left()).length === 3, 15_000)
    const { body: metrics } = await server.ask('/metrics', { headers: AS_ADA })
    assert.match(metrics, /^tidings_swept_events_total\{rule="rule-1"\} 7$/m)
    assert.match(metrics, /^tidings_evicted_events_total\{budget="budget-1"\} 13$/m)
    assert.match(
      metrics,
      /^tidings_file_last_reload_successful\{flag="--retention-policy-file"\} 1$/m,
    )
  })
})

describe('kubectl and retention windows', { skip: whyNot(RECORDED_WITH) }, () => {
  test('prints the table', async () => {
    await using session = await KubectlSession.start(RECORDED_WITH, '')
    await session.run('kubectl create -f events.yaml')
    const { output, exitCode } = await session.run('kubectl get rwin -A')
    assert.equal(exitCode, 0, output)
    const [head = '', cluster = '', shop = ''] = output.split('\n')
    assert.match(head, /^NAMESPACE +NAME +EVENTS +BYTES +OLDEST +LIFETIMES +BUDGET +EVICTED/)
    assert.match(cluster, /^ +local +\d+ +[\d.]+Ki +\d+\w+ +1h +0$/)
    assert.match(shop, /^\w+ +\w+ +\d+ +[\d.]+(Ki)? +\d+\w+ +1h +0$/)
  })
})
