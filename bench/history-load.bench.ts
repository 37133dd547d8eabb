/**
 * What the archive costs those who write: `npm run bench -- history-load [seconds]`. Two servers, each
 * with its own etcd, one with an archive, get the same creates at the same rate, and events live for
 * five minutes. Prints the latency of creates of both, how far the archive lags, and the memory of the
 * server and of its processes over time.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { startEtcd } from '../test/support/etcd.ts'
import { percentile } from '../test/support/load.ts'
import { type LoadConnection, openHttp2 } from '../test/support/load-connection.ts'
import { Tidings } from '../test/support/tidings.ts'

const SECONDS = Number(process.argv[2] ?? 60)
const PER_SECOND = Number(process.argv[3] ?? 1_200)
const TICK_MS = 20
const SAMPLE_MS = 10_000
const USERS = 8
const MIB = 1024 * 1024

await using stack = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'tidings-history-load-'))
stack.defer(() => rm(folder, { recursive: true, force: true }))
const users = Array.from({ length: USERS }, (_, index) => `load-${index}`)
await writeFile(
  join(folder, 'tokens.csv'),
  users.map((user, index) => `${user},${user},${index},system:masters\n`).join(''),
)

interface Side {
  readonly name: string
  readonly server: Tidings
  readonly connections: readonly LoadConnection[]
  readonly latencies: number[]
  readonly failures: Map<number, number>
}

async function side(name: string, flags: readonly string[]): Promise<Side> {
  const etcd = stack.use(await startEtcd({ args: ['--quota-backend-bytes=8589934592'] }))
  const server = stack.use(
    await Tidings.start([
      `--etcd-servers=${etcd.endpoints.join(',')}`,
      `--token-auth-file=${folder}/tokens.csv`,
      '--event-ttl=5m',
      ...flags,
    ]),
  )
  await server.until('/readyz', ({ status }) => status === 200, 60_000)
  const note = (what: string) => process.stderr.write(`${name}: ${what}\n`)
  const connections = await Promise.all(users.map(() => openHttp2(server, note)))
  for (const connection of connections) stack.defer(() => connection.destroy())
  return { name, server, connections, latencies: [], failures: new Map() }
}

const sides = [
  await side('without history', []),
  await side('with history', [`--history=file://${folder}/archive`]),
] as const

let sent = 0
function create({ connections, latencies, failures }: Side, number: number): Promise<void> {
  const connection = connections[number % USERS]
  if (connection === undefined) throw new RangeError('no connection')
  const namespace = `team-${number % 200}`
  const began = performance.now()
  const exchange = {
    method: 'POST',
    path: `/apis/events.k8s.io/v1/namespaces/${namespace}/events`,
    headers: {
      authorization: `Bearer ${users[number % USERS]}`,
      'content-type': 'application/json',
    },
    body: eventOf(number, namespace),
  }
  return new Promise((resolve) => {
    connection.ask(exchange, (status) => {
      latencies.push(performance.now() - began)
      if (status !== 201) failures.set(status, (failures.get(status) ?? 0) + 1)
      resolve()
    })
  })
}

function eventOf(number: number, namespace: string): string {
  return JSON.stringify({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `e.${number.toString(36)}`, namespace },
    eventTime: new Date().toISOString().replace('Z', '000Z'),
    reportingController: 'kubelet',
    reportingInstance: `node-${number % 500}`,
    action: 'Pulling',
    reason: ['Pulled', 'Created', 'Started', 'BackOff', 'Unhealthy'][number % 5],
    type: number % 5 > 2 ? 'Warning' : 'Normal',
    regarding: {
      kind: 'Pod',
      apiVersion: 'v1',
      namespace,
      name: `web-${(number % 5_000).toString(36)}-x${number % 7}`,
      uid: `00000000-0000-4000-8000-${String(number % 5_000).padStart(12, '0')}`,
    },
    note: `Container image "registry.example.com/team/web:v${number % 97}" attempt ${number}`,
  })
}

/** The process and those that it has started. */
async function rssOf({ server }: Side): Promise<readonly [server: number, others: number]> {
  const own = server.process.pid ?? 0
  let others = 0
  let main = 0
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const bytes = Number(fields[21]) * 4096
      if (Number(pid) === own) main = bytes
      else if (Number(fields[1]) === own) others += bytes
    } catch {
      // It has ended.
    }
  }
  return [main / MIB, others / MIB]
}

async function lagOf({ server }: Side): Promise<number> {
  const { body } = await server.ask('/metrics', { headers: { authorization: 'Bearer load-0' } })
  return Number(/^tidings_history_position_lag_seconds (\S+)$/m.exec(body)?.[1] ?? Number.NaN)
}

const print = (line: string) => process.stdout.write(`${line}\n`)
print(`${PER_SECOND} creates a second for ${SECONDS} s, lifetime 5 min`)
print('second  lag s  RSS with (server + processes) MiB  RSS without MiB')
const lags: number[] = []
const memory: number[] = []
const started = performance.now()
let nextSample = SAMPLE_MS
const pending = new Set<Promise<void>>()
while (performance.now() - started < SECONDS * 1_000) {
  const elapsed = performance.now() - started
  const due = Math.floor((elapsed / 1_000) * PER_SECOND)
  for (; sent < due; sent++) {
    for (const one of sent % 2 === 0 ? sides : sides.toReversed()) {
      const work = create(one, sent)
      pending.add(work)
      void work.finally(() => pending.delete(work))
    }
  }
  if (elapsed >= nextSample) {
    nextSample += SAMPLE_MS
    const [without, withHistory] = sides
    const [server, others] = await rssOf(withHistory)
    const [plain] = await rssOf(without)
    const lag = await lagOf(withHistory)
    lags.push(lag)
    memory.push(server + others)
    const cells = [
      Math.round(elapsed / 1_000),
      lag.toFixed(0),
      `${server.toFixed(0)} + ${others.toFixed(0)}`,
      plain.toFixed(0),
    ]
    print(cells.join('  '))
  }
  await new Promise((resolve) => setTimeout(resolve, TICK_MS))
}
await Promise.all(pending)
for (const { name, latencies, failures } of sides) {
  const [half, most] = [0.5, 0.99].map((share) => percentile(latencies, share).toFixed(2))
  print(
    `${name}: ${latencies.length} creates, median ${half} ms, p99 ${most} ms, not 201: ${JSON.stringify([...failures])}`,
  )
}
const [plain, archived] = sides.map(({ latencies }) => percentile(latencies, 0.5))
print(`ratio of medians: ${((archived ?? 0) / (plain ?? 1)).toFixed(2)}`)
print(`largest lag: ${Math.max(...lags).toFixed(0)} s`)
const quarter = Math.max(1, Math.floor(memory.length / 4))
const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length
print(
  `memory in the second and the last quarter: ${mean(memory.slice(quarter, 2 * quarter)).toFixed(0)}, ${mean(memory.slice(-quarter)).toFixed(0)} MiB`,
)
