/**
 * What a request costs: the CPU time of our process beside that of a bare Node server with the same
 * TLS, HTTP/2, body and response size, loaded by turns; the bytes that a request allocates; and a
 * profile by folder.
 *
 *   npm run bench:cost [-- rounds, default 5]
 *
 * Needs h2load (of nghttp2). Appends its figures to `.cache/bench/cost.jsonl`, and prints those of
 * the run before beside them.
 */
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv } from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { DevCredentials } from '../src/dev/credentials.ts'
import { startEtcd } from '../test/support/etcd.ts'
import { EventClient } from '../test/support/event-client.ts'
import { inParallel } from '../test/support/load.ts'
import { Tidings } from '../test/support/tidings.ts'
import { objectOf } from './memory/events.ts'
import { type Load, loadRate } from './support/h2load.ts'
import { bytesByFolder, cpuByFolder, type ServerProfile } from './support/profile-by-folder.ts'
import { Readers } from './support/readers.ts'
import { event, median, secondsOf } from './support/request-costs.ts'

const rounds = Number(argv[2] ?? '5')
const LISTED = 10_000
const WATCHERS = { sessions: 8, streamsPerSession: 50 }
const PUBLISHED = 200
const historyFile = join(import.meta.dirname, '../.cache/bench/cost.jsonl')
const MANY = { connections: 8, streams: 32 }
const SHOWN = 16
const ONE = { connections: 1, streams: 1 }
/** `{"type":"ADDED","object":…}` and the end of the line, and the names of kind and version. */
const FRAME_BYTES = 80

/** Of one kind of request: what the issue asks for at most, where it does. */
interface Operation {
  readonly name: string
  readonly ratioMax?: number
  readonly path: string
  readonly body?: Buffer
  readonly load: Pick<Load, 'connections' | 'streams'>
  readonly requests: number
}

/** A server under load. */
interface Side {
  readonly url: string
  readonly process: { readonly pid?: number | undefined }
  readonly headers: Readonly<Record<string, string>>
}

await using cleanup = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'tidings-bench-'))
cleanup.defer(() => rm(folder, { recursive: true, force: true }))
const access = await DevCredentials.create(folder)
const prefix = '/bench'
await using etcd = await startEtcd({ args: ['--quota-backend-bytes=8589934592'] })
const endpoint = etcd.endpoints[0] ?? ''
await using server = await start()
await server.until('/readyz', ({ status }) => status === 200, 10_000)
using client = await EventClient.open({ port: server.port, ca: server.ca, token: access.token })
const names: string[] = []
await inParallel(LISTED, 64, async (n) => {
  names.push((await client.create(event(n, 'listed'))).metadata.name)
})
const bare = fork(new URL('./support/bare-server.ts', import.meta.url), [
  endpoint,
  prefix,
  'listed',
])
cleanup.defer(() => bare.disconnect())
const [barePort] = await once(bare, 'message')

const headers = { authorization: `Bearer ${access.token}`, 'content-type': 'application/json' }
const ours: Side = { url: urlOf(server.port), process: server.process, headers }
const theirs: Side = { url: urlOf(barePort), process: bare, headers }
const sent = Buffer.from(JSON.stringify(event(0, 'created')))
const selected = `fieldSelector=regarding.uid=${objectOf(0).uid}`
const listed = client.path('listed')
const operations: readonly Operation[] = [
  {
    name: 'create',
    ratioMax: 2.2,
    path: client.path('created'),
    body: sent,
    load: MANY,
    requests: 8_000,
  },
  {
    name: 'create, one by one',
    path: client.path('created'),
    body: sent,
    load: ONE,
    requests: 800,
  },
  { name: 'get', ratioMax: 1.8, path: `${listed}/${names[0]}`, load: MANY, requests: 12_000 },
  {
    name: 'page of 500',
    path: `${listed}?limit=500`,
    load: { connections: 2, streams: 2 },
    requests: 200,
  },
  { name: `list of 10 in ${LISTED}`, path: `${listed}?${selected}`, load: MANY, requests: 6_000 },
]
const figures: Record<
  string,
  { readonly ours: number; readonly bare: number; readonly ratio: number }
> = {}
const before = lastFigures()
for (const operation of operations) await compare(operation)
await compareFrames()
keepFigures()
await profile(operations[0])

function start(env: Readonly<Record<string, string>> = {}): Promise<Tidings> {
  const flags = [`--etcd-servers=${endpoint}`, `--etcd-prefix=${prefix}`]
  return Tidings.start([...flags, `--token-auth-file=${access.tokenFile}`], env)
}

/** CPU microseconds per request of both, in turns. */
async function compare(operation: Operation): Promise<void> {
  const { name, body, load, requests } = operation
  const response = await server.ask(operation.path, {
    method: body === undefined ? 'GET' : 'POST',
    headers,
    ...(body === undefined ? {} : { body: body.toString() }),
  })
  const barePath = `/bytes/${Buffer.byteLength(response.body)}`
  const run = (side: Side, path: string): Promise<number> =>
    costOf(side, requests, () =>
      loadRate({
        url: `${side.url}${path}`,
        headers: side.headers,
        amount: { requests },
        ...load,
        ...(body === undefined ? {} : { body }),
      }),
    )
  const used = await byTurns([() => run(ours, operation.path), () => run(theirs, barePath)])
  show(name, used, operation.ratioMax)
}

/** What one frame costs: publishing with watchers, less publishing without, by their number. */
async function compareFrames(): Promise<void> {
  const frames = PUBLISHED * WATCHERS.sessions * WATCHERS.streamsPerSession
  const publish = (side: Side, path: string): Promise<unknown> =>
    loadRate({
      url: `${side.url}${path}`,
      headers: side.headers,
      amount: { requests: PUBLISHED },
      connections: 1,
      streams: 4,
      body: sent,
    })
  const frameCost = async (side: Side, watch: string, path: string): Promise<number> => {
    const alone = await costOf(side, 1, () => publish(side, path))
    await using readers = await Readers.open({
      ...{ url: side.url, path: watch, headers: side.headers },
      ...WATCHERS,
    })
    const all = await costOf(side, 1, async () => {
      await Promise.all([publish(side, path), readers.received(frames)])
    })
    return (all - alone) / frames
  }
  const { metadata } = await client.list('created', { limit: 1 })
  const { body } = await server.ask(`${client.path('created')}?limit=1`, { headers })
  const frameBytes = JSON.stringify(JSON.parse(body).items[0]).length + FRAME_BYTES
  const used = await byTurns([
    () => {
      const from = `resourceVersion=${metadata.resourceVersion}&timeoutSeconds=600`
      return frameCost(ours, `${client.path('watched')}?watch=true&${from}`, client.path('watched'))
    },
    () => frameCost(theirs, '/watch', `/publish/${frameBytes}`),
  ])
  show('watch frame', used, 1.3)
}

/** The first round warms up. The order changes with each round. */
async function byTurns(
  runs: readonly [() => Promise<number>, () => Promise<number>],
): Promise<readonly [number[], number[]]> {
  const used: [number[], number[]] = [[], []]
  for (let round = 0; round <= rounds; round++) {
    for (const index of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const micros = await runs[index]()
      if (round > 0) used[index].push(micros)
    }
  }
  return used
}

async function costOf(side: Side, requests: number, run: () => Promise<unknown>): Promise<number> {
  const startedAt = secondsOf(side)
  await run()
  return ((secondsOf(side) - startedAt) * 1e6) / requests
}

function show(name: string, [own, plain]: readonly [number[], number[]], ratioMax?: number): void {
  const ratios = own.map((micros, round) => micros / (plain[round] ?? Number.NaN))
  const figure = { ours: median(own), bare: median(plain), ratio: median(ratios) }
  figures[name] = figure
  const last = before[name]?.ratio
  const target =
    ratioMax === undefined
      ? ''
      : `, wanted ${ratioMax}: ${figure.ratio <= ratioMax ? 'met' : 'MISSED'}`
  process.stdout.write(
    `${name.padEnd(22)} ${figure.ours.toFixed(1)} µs, bare ${figure.bare.toFixed(1)} µs: ` +
      `${figure.ratio.toFixed(2)} times (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})` +
      `${target}${last === undefined ? '' : `, last run ${last.toFixed(2)}`}\n`,
  )
}

/** A server of its own, since a profile costs time as well. */
async function profile(operation: Operation | undefined): Promise<void> {
  if (operation === undefined) return
  const preload = new URL('./support/profiled.ts', import.meta.url).href
  await using profiled = await start({
    NODE_OPTIONS: `--import=${preload}`,
    PROFILE_FOLDER: folder,
  })
  await profiled.until('/readyz', ({ status }) => status === 200, 10_000)
  const run = (requests: number): Promise<number> =>
    loadRate({
      url: `${urlOf(profiled.port)}${operation.path}`,
      headers,
      amount: { requests },
      ...operation.load,
      ...(operation.body === undefined ? {} : { body: operation.body }),
    })
  await run(operation.requests)
  profiled.process.kill('SIGUSR2')
  await written('started')
  const requests = 20_000
  await run(requests)
  profiled.process.kill('SIGUSR2')
  const { cpu, heap }: ServerProfile = JSON.parse(await written('profile'))
  const bytes = bytesByFolder(heap)
  const perRequest = sumOf(bytes) / requests
  process.stdout.write(
    `\n${operation.name}: ${perRequest.toFixed(0)} bytes allocated per request\n`,
  )
  printShares(`time of the main thread, by folder`, cpuByFolder(cpu))
  printShares('allocated bytes, by folder', bytes)
}

async function written(name: string): Promise<string> {
  const file = join(folder, name)
  while (!existsSync(file)) await sleep(50)
  return readFileSync(file, 'utf8')
}

function printShares(title: string, sums: ReadonlyMap<string, number>): void {
  const total = sumOf(sums)
  const largest = [...sums].sort(([, one], [, other]) => other - one).slice(0, SHOWN)
  const lines = largest.map(
    ([name, value]) => `  ${((100 * value) / total).toFixed(1).padStart(5)} %  ${name}`,
  )
  process.stdout.write(`\n${title}\n${lines.join('\n')}\n`)
}

function sumOf(sums: ReadonlyMap<string, number>): number {
  return [...sums.values()].reduce((sum, value) => sum + value, 0)
}

function lastFigures(): typeof figures {
  if (!existsSync(historyFile)) return {}
  const last = readFileSync(historyFile, 'utf8').trim().split('\n').at(-1) ?? '{}'
  return JSON.parse(last).figures ?? {}
}

function keepFigures(): void {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  mkdirSync(join(historyFile, '..'), { recursive: true })
  appendFileSync(historyFile, `${JSON.stringify({ at: new Date(), commit, figures })}\n`)
}

function urlOf(port: number): string {
  return `https://127.0.0.1:${port}`
}
