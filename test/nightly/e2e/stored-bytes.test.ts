/**
 * Users within their write limits cannot exceed the memory limit, nor keep others from writing:
 *   node --test test/nightly/e2e/stored-bytes.test.ts
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import http2 from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'
import { WRITE } from '../../support/limited-server.ts'
import { prefix, Replica } from '../../support/storage.ts'
import { eventBody, eventKey } from '../../support/stored-events.ts'
import { type Answer, Tidings } from '../../support/tidings.ts'

const MIB = 1024 * 1024
const LIMIT_MIB = 256
/** The environment in which the launcher, the chart and the image start it. */
const ENV = {
  MALLOC_ARENA_MAX: '1',
  NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=8',
}
const GREEDY_MS_MAX = 30_000
const REFUSALS = 10
const AT_ONCE = 4
/** A third more than may be loaded. */
const STORED_EVENTS = 900

function residentMib({ process }: Tidings): number {
  const status = readFileSync(`/proc/${process.pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
}

function eventOf(namespace: string, name: string, filler: string): string {
  const event = JSON.parse(WRITE.body ?? '')
  event.metadata = { name, namespace, annotations: { filler } }
  event.regarding.namespace = namespace
  return JSON.stringify(event)
}

/** A user with a connection of its own. */
class Client implements Disposable {
  readonly #session: http2.ClientHttp2Session
  readonly #user: string
  readonly #namespace: string

  constructor({ port, ca }: Tidings, user: string, namespace: string) {
    this.#session = http2.connect(`https://localhost:${port}`, { ca })
    this.#user = user
    this.#namespace = namespace
  }

  async write(name: string, bytes: number): Promise<Pick<Answer, 'status' | 'body'>> {
    const stream = this.#session.request({
      ':method': 'POST',
      ':path': `/apis/events.k8s.io/v1/namespaces/${this.#namespace}/events`,
      authorization: `Bearer ${this.#user}`,
      'content-type': 'application/json',
    })
    const responded = once(stream, 'response')
    stream.end(eventOf(this.#namespace, name, 'x'.repeat(bytes)))
    const [headers] = (await responded) as [http2.IncomingHttpHeaders & { ':status': number }]
    return { status: headers[':status'], body: await text(stream) }
  }

  [Symbol.dispose](): void {
    this.#session.destroy()
  }
}

async function metric(server: Tidings, name: string): Promise<number> {
  const { body } = await server.ask('/metrics')
  return Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'm').exec(body)?.[1])
}

const CLUSTERS = `apiVersion: tidings.dev/v1alpha1
kind: ClusterConfiguration
clusters:
- name: prod
  kubeconfig: origin.kubeconfig
  mirror: {}
`

function kubeconfigOf({ port, ca }: Tidings): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'c',
    contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    clusters: [
      {
        name: 'c',
        cluster: {
          server: `https://localhost:${port}`,
          'certificate-authority-data': Buffer.from(ca).toString('base64'),
        },
      },
    ],
    users: [{ name: 'u', user: { token: 'bob' } }],
  })
}

describe('stored bytes', () => {
  test('two users of large events stay within the memory limit, and a third is served', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-bytes-'))
    try {
      const tokenFile = join(folder, 'tokens.csv')
      await writeFile(tokenFile, 'ada,ada,ada\neve,eve,eve\nbob,bob,bob\n')
      await using etcd = await startEtcd()
      const flags = [
        `--etcd-servers=${etcd.endpoints[0]}`,
        `--token-auth-file=${tokenFile}`,
        '--authorization-mode=AlwaysAllow',
        `--memory-limit=${LIMIT_MIB}Mi`,
      ]
      const statuses = new Map<string, number>()
      {
        await using server = await Tidings.start(flags, ENV)
        await server.until('/readyz', ({ status }) => status === 200, 20_000)
        const startedMib = residentMib(server)
        const until = performance.now() + GREEDY_MS_MAX
        using ada = new Client(server, 'ada', 'a')
        using eve = new Client(server, 'eve', 'a')
        using bob = new Client(server, 'bob', 'b')
        const count = (key: string): number => statuses.get(key) ?? 0
        const isDone = (): boolean =>
          performance.now() > until || Math.min(count('ada 429'), count('eve 429')) > REFUSALS
        let peakMib = 0
        let refusal = ''
        const flood = async (user: string, client: Client, worker: number): Promise<void> => {
          for (let at = 0; !isDone(); at++) {
            const { status, body } = await client.write(`${user}-${worker}-${at}`, 125_000)
            const key = `${user} ${status}`
            statuses.set(key, count(key) + 1)
            peakMib = Math.max(peakMib, residentMib(server))
            if (status === 429) refusal = body
            if (status !== 201) await new Promise((resolve) => setTimeout(resolve, 250))
          }
        }
        const modest = async (): Promise<void> => {
          for (let at = 0; !isDone(); at++) {
            const { status, body } = await bob.write(`bob-${at}`, 1_000)
            assert.equal(status, 201, body)
            await new Promise((resolve) => setTimeout(resolve, 50))
          }
        }
        const workers = Array.from({ length: AT_ONCE }, (_, worker) => worker)
        await Promise.all([
          modest(),
          ...workers.flatMap((worker) => [flood('ada', ada, worker), flood('eve', eve, worker)]),
        ])
        const eventsMib = (await metric(server, 'tidings_memory_event_bytes')) / MIB
        context.diagnostic(
          `${[...statuses].join(' ')}; events ${eventsMib.toFixed(0)} MiB; resident ${startedMib.toFixed(0)} MiB, at most ${peakMib.toFixed(0)} MiB`,
        )
        assert.ok(count('ada 429') > 0 && count('eve 429') > 0)
        assert.match(refusal, /memory for events is short/)
        assert.match(refusal, /"retryAfterSeconds":[1-9]/)
        assert.ok(peakMib < LIMIT_MIB, `${peakMib} MiB`)
      }
      await using restarted = await Tidings.start(flags, ENV)
      await restarted.until('/readyz', ({ status }) => status === 200, 20_000)
      const mib = residentMib(restarted)
      context.diagnostic(`resident after a restart: ${mib.toFixed(0)} MiB`)
      assert.ok(mib < LIMIT_MIB, `${mib} MiB`)
      using bob = new Client(restarted, 'bob', 'b')
      assert.equal((await bob.write('again', 1_000)).status, 201)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })

  test('a replica that cannot hold the events says so, lets them expire, and then serves', async (context) => {
    await using etcd = await startEtcd()
    {
      await using writer = new Replica(etcd)
      const note = 'x'.repeat(100_000)
      for (let at = 0; at < STORED_EVENTS; at += 50) {
        const keys = Array.from({ length: 50 }, (_, n) => eventKey('a', `e-${at + n}`))
        await Promise.all(keys.map((key) => writer.storage.create(key, eventBody(key, note))))
      }
    }
    await using server = await Tidings.start(
      [
        `--etcd-servers=${etcd.endpoints[0]}`,
        `--etcd-prefix=${prefix}`,
        `--memory-limit=${LIMIT_MIB}Mi`,
        '--event-ttl=10s',
      ],
      ENV,
    )
    const isUnready = ({ body }: Answer): boolean => body.includes('informer-sync failed')
    await server.until('/readyz?verbose', isUnready, 20_000)
    const said = 'The events in etcd take more than their part of the memory limit: not ready'
    await eventually('it says why', () => server.log.some(({ msg }) => msg === said), 20_000)
    let peakMib = 0
    const sampling = setInterval(() => {
      peakMib = Math.max(peakMib, residentMib(server))
    }, 50)
    try {
      // It waits for three lease times before it sweeps.
      await server.until('/readyz', ({ status }) => status === 200, 90_000)
    } finally {
      clearInterval(sampling)
    }
    context.diagnostic(`resident: at most ${peakMib.toFixed(0)} MiB`)
    assert.ok(peakMib > 0 && peakMib < LIMIT_MIB, `${peakMib} MiB`)
    await eventually(
      'nothing is left',
      async () => (await metric(server, 'tidings_memory_event_bytes')) < MIB,
      20_000,
    )
  })

  test('a mirrored cluster of large events is truncated and slowed down, and others are served', async (context) => {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-bytes-'))
    try {
      const tokenFile = join(folder, 'tokens.csv')
      await writeFile(tokenFile, 'bob,bob,bob\n')
      await using originEtcd = await startEtcd()
      await using targetEtcd = await startEtcd({ args: ['--quota-backend-bytes=268435456'] })
      {
        await using writer = new Replica(originEtcd)
        const note = 'x'.repeat(250_000)
        // A mirror does not list events that have expired.
        const eventTime = new Date().toISOString().replace('Z', '000Z')
        for (let at = 0; at < 400; at += 20) {
          const keys = Array.from({ length: 20 }, (_, n) => eventKey('a', `e-${at + n}`))
          await Promise.all(
            keys.map((key) => writer.storage.create(key, eventBody(key, note, { eventTime }))),
          )
        }
      }
      const common = [`--token-auth-file=${tokenFile}`, '--authorization-mode=AlwaysAllow']
      await using origin = await Tidings.start([
        `--etcd-servers=${originEtcd.endpoints[0]}`,
        `--etcd-prefix=${prefix}`,
        ...common,
      ])
      await origin.until('/readyz', ({ status }) => status === 200, 30_000)
      await writeFile(join(folder, 'origin.kubeconfig'), kubeconfigOf(origin))
      const clustersFile = join(folder, 'clusters.yaml')
      await writeFile(clustersFile, CLUSTERS)
      await using server = await Tidings.start(
        [
          `--etcd-servers=${targetEtcd.endpoints[0]}`,
          `--clusters-file=${clustersFile}`,
          `--memory-limit=${LIMIT_MIB}Mi`,
          ...common,
        ],
        ENV,
      )
      await server.until('/readyz', ({ status }) => status === 200, 30_000)
      using bob = new Client(server, 'bob', 'b')
      let peakMib = 0
      const until = performance.now() + 60_000
      const throttled = (): Promise<number> => metric(server, 'tidings_mirror_throttled_total')
      let written = 0
      while (performance.now() < until && !((await throttled()) > 100)) {
        const { status, body } = await bob.write(`bob-${written++}`, 1_000)
        assert.equal(status, 201, body)
        peakMib = Math.max(peakMib, residentMib(server))
        await new Promise((resolve) => setTimeout(resolve, 100))
      }
      const truncated = await metric(
        server,
        'tidings_mirror_events_total\\{[^}]*result="truncated"\\}',
      )
      const eventsMib = (await metric(server, 'tidings_memory_event_bytes')) / MIB
      const used = await metric(server, 'tidings_etcd_quota_used_ratio')
      context.diagnostic(
        `${truncated} truncated, ${written} of others; events ${eventsMib.toFixed(0)} MiB, resident at most ${peakMib.toFixed(0)} MiB, etcd ${used.toFixed(2)}`,
      )
      assert.ok((await throttled()) > 0, 'the mirror was never slowed down')
      assert.ok(truncated > 100 && truncated < 400, `${truncated}`)
      assert.ok(peakMib < LIMIT_MIB, `${peakMib} MiB`)
      assert.ok(used < 0.8, `${used}`)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
})
