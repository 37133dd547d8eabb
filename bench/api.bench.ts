/**
 * The Event API over TLS, with one replica as operators run it, against the etcd behind it:
 *   npm run bench -- api
 *   node bench/api.bench.ts [seconds per measurement, default 2] [rounds, default 3]
 *
 * Everything runs on this machine, one after another, in rounds, because the speed of the machine
 * varies: each figure is the median of its rounds. Needs h2load (of nghttp2) and a build in dist/.
 * Exits with 1 when a target is missed.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DevCredentials } from '../src/dev/credentials.ts'
import { EtcdClient } from '../src/etcd/client.ts'
import { EventKeys } from '../src/storage/etcd/keys.ts'
import { startEtcd } from '../test/support/etcd.ts'
import { EventClient } from '../test/support/event-client.ts'
import { inParallel } from '../test/support/load.ts'
import { Tidings } from '../test/support/tidings.ts'
import { benchEvent, objectOf } from './memory/events.ts'
import { barePutRate, bareRangeRate } from './support/bare-etcd.ts'
import { type Load, loadRate } from './support/h2load.ts'

const seconds = Number(process.argv[2] ?? 2)
const rounds = Number(process.argv[3] ?? 3)
const prefix = '/bench'
const listed = 10_000
const namespace = 'listed'
/** 256 requests in flight. */
const many = { amount: { seconds }, connections: 8, streams: 32 }
/** One request at a time. */
const alone = { connections: 1, streams: 1 }

await using cleanup = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'tidings-bench-'))
cleanup.defer(() => rm(folder, { recursive: true, force: true }))
const access = await DevCredentials.create(folder)
// etcd has fsync on, as operators run it, and a sufficient quota.
await using etcd = await startEtcd({
  args: ['--unsafe-no-fsync=false', '--quota-backend-bytes=8589934592'],
})
const endpoint = etcd.endpoints[0] ?? ''
await using server = await Tidings.start([
  `--etcd-servers=${endpoint}`,
  `--etcd-prefix=${prefix}`,
  `--token-auth-file=${access.tokenFile}`,
])
await server.until('/readyz', ({ status }) => status === 200, 10_000)
const bare = fork(new URL('./support/bare-server.ts', import.meta.url), [
  endpoint,
  prefix,
  namespace,
])
cleanup.defer(() => bare.disconnect())
const [barePort] = await once(bare, 'message')
using client = await EventClient.open({ port: server.port, ca: server.ca, token: access.token })
const etcdClient = new EtcdClient({ ...etcd, defaultTimeoutMs: 10_000 })
cleanup.defer(() => etcdClient.close())
const keys = new EventKeys(prefix)

const names: string[] = []
await inParallel(listed, 64, async (n) => {
  names.push((await client.create(event(n, namespace))).metadata.name)
})
const sent = Buffer.from(JSON.stringify(event(0, 'created')))
const storedKey = Buffer.from(keys.format({ cluster: 'local', namespace, name: names[0] ?? '' }))
const storedBytes = (await etcdClient.range({ key: storedKey })).kvs[0]?.value.length ?? 0
const selected = `${client.path(namespace)}?fieldSelector=regarding.uid=${objectOf(0).uid}`
await checkLists()

const rates = await measure({
  create: () => api(client.path('created'), { ...many, body: sent }),
  put: () => barePutRate(endpoint, seconds, storedBytes),
  nodePost: () => bareNode('/', { ...many, body: sent }),
  get: () => api(client.path(namespace, names[0]), many),
  range: () => bareRangeRate(endpoint, seconds, storedKey),
  nodeGet: () => bareNode('/', many),
  list: () => api(client.path(namespace), { ...alone, amount: { requests: 25 * seconds } }),
  decodedList: () => bareNode('/list', { ...alone, amount: { requests: 5 * seconds } }),
  select: () => api(selected, many),
})
report()

/** The results of each round, by name. */
async function measure<Name extends string>(
  measurements: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Readonly<Record<Name, readonly number[]>>> {
  const each = Object.entries<() => Promise<number>>(measurements)
  const found = new Map<string, number[]>(each.map(([name]) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [name, run] of each) found.get(name)?.push(await run())
  }
  return Object.fromEntries(found) as Record<Name, number[]>
}

function api(path: string, load: Omit<Load, 'url'>): Promise<number> {
  const url = `https://127.0.0.1:${server.port}${path}`
  const headers = { authorization: `Bearer ${access.token}`, 'content-type': 'application/json' }
  return loadRate({ url, headers, ...load })
}

function bareNode(path: string, load: Omit<Load, 'url'>): Promise<number> {
  return loadRate({ url: `https://127.0.0.1:${barePort}${path}`, ...load })
}

/** Checks that the lists to be measured have the expected content. */
async function checkLists(): Promise<void> {
  const whole = await client.list(namespace)
  const some = await client.list(namespace, { fieldSelector: `regarding.uid=${objectOf(0).uid}` })
  if (whole.items.length !== listed || some.items.length !== 10) {
    throw new Error(`listed ${whole.items.length}, selected ${some.items.length}`)
  }
}

/** Events about an object that has ten of them; without the fields that new events may not have. */
function event(n: number, namespace: string): Parameters<EventClient['create']>[0] {
  const { deprecatedSource, deprecatedLastTimestamp, deprecatedCount, ...made } = JSON.parse(
    benchEvent(n).body.toString(),
  )
  const regarding = { ...made.regarding, namespace }
  return { ...made, regarding, metadata: { generateName: 'payment-gateway-', namespace } }
}

function report(): void {
  const { create, put, get, range, list, decodedList, select, nodePost, nodeGet } = rates
  print(
    `events of ${storedBytes} bytes as stored, one replica, one etcd with fsync, TLS throughout`,
  )
  print(`create                ${rate(create)}`)
  print(`  bare etcd, Put      ${rate(put)}  we: ${verdict(ratio(create, put), 0.3)}`)
  print(`  bare Node, POST     ${rate(nodePost)}  we: ${text(ratio(create, nodePost), 2)}`)
  const getWanted = Math.min(10_000, 0.25 * median(range))
  print(`get                   ${rate(get)}  ${verdict(median(get), getWanted, 0)}`)
  print(`  bare etcd, Range    ${rate(range)}  we: ${text(ratio(get, range), 2)}`)
  print(`  bare Node, GET      ${rate(nodeGet)}  we: ${text(ratio(get, nodeGet), 2)}`)
  print(`list all ${listed}        ${rate(list, 1)}  one after another`)
  print(
    `  decoded from etcd   ${rate(decodedList, 1)}  we: ${verdict(ratio(list, decodedList), 10)}`,
  )
  print(`list 10 of ${listed}      ${rate(select)}  ${verdict(median(select), 3_000, 0)}`)
}

function verdict(value: number, wanted: number, digits = 2): string {
  const isMet = value >= wanted
  if (!isMet) process.exitCode = 1
  const outcome = isMet ? 'met' : 'MISSED'
  return `${text(value, digits)}, wanted ${text(wanted, digits)}: ${outcome}`
}

/** Ratio of two measurements of the same round, next to each other. */
function ratio(ours: readonly number[], theirs: readonly number[]): number {
  return median(ours.map((one, round) => one / (theirs[round] ?? Number.NaN)))
}

function rate(rounds: readonly number[], digits = 0): string {
  return `${text(median(rounds), digits).padStart(8)}/s`
}

function text(value: number, digits: number): string {
  return value.toLocaleString('en', { maximumFractionDigits: digits })
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
