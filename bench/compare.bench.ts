/**
 * This build against another, over TLS, by the CPU time of each request:
 *   npm run bench:compare -- /path/to/another/dist/main.js [rounds, default 7]
 *
 * Both run side by side on one etcd and are loaded alternately, in an order that changes with each
 * round, so that variations of the machine affect both. Needs h2load (of nghttp2). Exits with 1
 * when this build needs more than 1.05 times as much CPU time for one of the loads.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { argv } from 'node:process'
import { DevCredentials } from '../src/dev/credentials.ts'
import { startEtcd } from '../test/support/etcd.ts'
import { EventClient } from '../test/support/event-client.ts'
import { inParallel } from '../test/support/load.ts'
import { Tidings } from '../test/support/tidings.ts'
import { benchEvent, objectOf } from './memory/events.ts'
import { loadRate } from './support/h2load.ts'

const RATIO_MAX = 1.05
const LISTED = 2000
const NAMESPACE = 'listed'
/** CPU time is counted in hundredths of a second, on every Linux. */
const TICKS_PER_SECOND = 100
/** 64 requests in flight. */
const MANY = { connections: 4, streams: 16 }

const [, , otherProgram, roundsText = '7'] = argv
if (otherProgram === undefined) throw new Error('give the dist/main.js of another build')

await using cleanup = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'tidings-bench-'))
cleanup.defer(() => rm(folder, { recursive: true, force: true }))
const access = await DevCredentials.create(folder)
await using etcd = await startEtcd({ args: ['--quota-backend-bytes=8589934592'] })

interface Build {
  readonly server: Tidings
  readonly loads: ReadonlyMap<string, { readonly requests: number; run(): Promise<unknown> }>
}

const builds = [await open('this', undefined), await open('other', resolve(otherProgram))] as const
for (const name of builds[0].loads.keys()) await compare(name)

async function open(prefix: string, program: string | undefined): Promise<Build> {
  const server = await Tidings.start(
    [
      `--etcd-servers=${etcd.endpoints[0]}`,
      `--etcd-prefix=/${prefix}`,
      `--token-auth-file=${access.tokenFile}`,
    ],
    {},
    program,
  )
  cleanup.use(server)
  await server.until('/readyz', ({ status }) => status === 200, 10_000)
  using client = await EventClient.open({ port: server.port, ca: server.ca, token: access.token })
  const names: string[] = []
  await inParallel(LISTED, 64, async (n) => {
    names.push((await client.create(event(n, NAMESPACE))).metadata.name)
  })
  const load = (requests: number, path: string, how: object) => ({
    requests,
    run: () =>
      loadRate({
        url: `https://127.0.0.1:${server.port}${path}`,
        headers: { authorization: `Bearer ${access.token}`, 'content-type': 'application/json' },
        amount: { requests },
        ...MANY,
        ...how,
      }),
  })
  const selected = `${client.path(NAMESPACE)}?fieldSelector=regarding.uid=${objectOf(0).uid}`
  const body = Buffer.from(JSON.stringify(event(0, 'created')))
  return {
    server,
    loads: new Map([
      ['get', load(12_000, client.path(NAMESPACE, names[0]), {})],
      ['create', load(6000, client.path('created'), { body })],
      [`list ${LISTED}`, load(150, client.path(NAMESPACE), { connections: 1, streams: 1 })],
      [`list 10 of ${LISTED}`, load(6000, selected, {})],
    ]),
  }
}

async function compare(name: string): Promise<void> {
  const used = builds.map((): number[] => [])
  // The first round warms up.
  for (let round = 0; round <= Number(roundsText); round++) {
    for (const index of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const micros = await costOf(builds[index], name)
      if (round > 0) used[index]?.push(micros)
    }
  }
  const [ours = Number.NaN, theirs = Number.NaN] = used.map(median)
  const ratio = ours / theirs
  const isMet = ratio <= RATIO_MAX
  if (!isMet) process.exitCode = 1
  process.stdout.write(
    `${name.padEnd(16)} ${ours.toFixed(1)} µs of the processor, other ${theirs.toFixed(1)} µs: ` +
      `${ratio.toFixed(3)}, wanted ${RATIO_MAX}: ${isMet ? 'met' : 'MISSED'}\n`,
  )
}

/** CPU time of the whole process, including its threads for garbage collection and encryption. */
async function costOf(build: Build | undefined, name: string): Promise<number> {
  const load = build?.loads.get(name)
  if (build === undefined || load === undefined) throw new Error(`no load ${name}`)
  const before = secondsOf(build.server)
  await load.run()
  return ((secondsOf(build.server) - before) * 1e6) / load.requests
}

function secondsOf({ process: { pid } }: Tidings): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Events about an object that has ten of them; without the fields that new events may not have. */
function event(n: number, namespace: string): Parameters<EventClient['create']>[0] {
  const { deprecatedSource, deprecatedLastTimestamp, deprecatedCount, ...made } = JSON.parse(
    benchEvent(n).body.toString(),
  )
  const regarding = { ...made.regarding, namespace }
  return { ...made, regarding, metadata: { generateName: 'payment-gateway-', namespace } }
}

function median(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN
}
