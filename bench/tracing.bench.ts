/**
 * The cost of tracing, over TLS, by the CPU time of each request:
 *   npm run bench -- tracing [rounds, default 7]
 *
 * Two processes of one build differ by more than tracing costs. So one process is loaded in turn
 * with requests that are not recorded and with requests that are, as their `traceparent` says: the
 * difference is the cost of a recorded request. To it comes the decision not to record, which each
 * request costs when tracing is on; it is measured by itself. The two give the cost of recording
 * one request of a hundred. For comparison the same loads run in turn on processes without tracing,
 * with one of a hundred, and with all requests recorded. Needs h2load (of nghttp2). Exits with 1
 * when one of a hundred costs more than 3 % for one of the loads.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { argv } from 'node:process'
import { DevCredentials } from '../src/dev/credentials.ts'
import { Tracer } from '../src/tracing/tracer.ts'
import { startEtcd } from '../test/support/etcd.ts'
import { OtlpReceiver } from '../test/support/otlp-receiver.ts'
import { Tidings } from '../test/support/tidings.ts'
import { costOf, median, openLoads, type RequestLoad } from './support/request-costs.ts'

const RATIO_MAX = 1.03
const HUNDREDTH = 10_000
const ALL = 1_000_000
const DECISIONS = 10_000_000
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331'

const rounds = Number(argv[2] ?? '7')
await using cleanup = new AsyncDisposableStack()
const folder = await mkdtemp(join(tmpdir(), 'tidings-bench-'))
cleanup.defer(() => rm(folder, { recursive: true, force: true }))
const access = await DevCredentials.create(folder)
await using etcd = await startEtcd({ args: ['--quota-backend-bytes=8589934592'] })
await using receiver = await OtlpReceiver.start()
const forgetting = setInterval(() => {
  receiver.spans.length = 0
  receiver.messages.length = 0
}, 100)
cleanup.defer(() => clearInterval(forgetting))

interface Measured {
  readonly server: Tidings
  readonly loads: ReadonlyMap<string, RequestLoad>
}

const decisionMicros = costOfDecision()
process.stdout.write(`a request that is not recorded: ${(decisionMicros * 1000).toFixed(0)} ns\n`)
const undecided = await open('undecided', 0)
for (const name of undecided.loads.keys()) await inOneProcess(undecided, name)
const processes = [
  await open('off', undefined),
  await open('hundredth', HUNDREDTH),
  await open('all', ALL),
]
for (const name of undecided.loads.keys()) await inSeveral(name)

async function open(prefix: string, rate: number | undefined): Promise<Measured> {
  const file = join(folder, `${prefix}.yaml`)
  await writeFile(
    file,
    `apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nendpoint: ${receiver.endpoint}\nsamplingRatePerMillion: ${rate ?? 0}\n`,
  )
  const server = await Tidings.start([
    `--etcd-servers=${etcd.endpoints[0]}`,
    `--etcd-prefix=/${prefix}`,
    `--token-auth-file=${access.tokenFile}`,
    ...(rate === undefined ? [] : [`--tracing-config-file=${file}`]),
  ])
  cleanup.use(server)
  return { server, loads: await openLoads(server, access.token) }
}

/** Microseconds. */
function costOfDecision(): number {
  const tracer = new Tracer({ samplingRatePerMillion: 0, onSpan: () => {} })
  let recorded = 0
  const startedAt = performance.now()
  for (let n = 0; n < DECISIONS; n++) if (tracer.begin(undefined) !== undefined) recorded++
  if (recorded > 0) throw new Error('a request was recorded')
  return ((performance.now() - startedAt) * 1000) / DECISIONS
}

async function inOneProcess({ server, loads }: Measured, name: string): Promise<void> {
  const used: readonly [number[], number[]] = [[], []]
  // The first round warms up.
  for (let round = 0; round <= rounds; round++) {
    for (const index of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      const headers = index === 0 ? {} : { traceparent: `${TRACEPARENT}-01` }
      const micros = await costOf(server, loads.get(name), headers)
      if (round > 0) used[index].push(micros)
    }
  }
  const [plain, recorded] = [median(used[0]), median(used[1])]
  const extra = Math.max(0, recorded - plain) / 100 + decisionMicros
  const ratio = 1 + extra / plain
  const isMet = ratio <= RATIO_MAX
  if (!isMet) process.exitCode = 1
  process.stdout.write(
    `${name.padEnd(16)} ${plain.toFixed(1)} µs, recorded ${recorded.toFixed(1)} µs; ` +
      `one of a hundred: ${ratio.toFixed(4)}, wanted ${RATIO_MAX}: ${isMet ? 'met' : 'MISSED'}\n`,
  )
}

async function inSeveral(name: string): Promise<void> {
  const used = processes.map((): number[] => [])
  for (let round = 0; round <= rounds; round++) {
    for (let turn = 0; turn < processes.length; turn++) {
      const index = (turn + round) % processes.length
      const measured = processes[index]
      if (measured === undefined) continue
      const micros = await costOf(measured.server, measured.loads.get(name))
      if (round > 0) used[index]?.push(micros)
    }
  }
  const [off = Number.NaN, ...on] = used.map(median)
  const ratios = on.map((micros) => (micros / off).toFixed(2))
  process.stdout.write(
    `${name.padEnd(16)} off ${off.toFixed(1)} µs; processes with one of a hundred and all: ${ratios.join(', ')}\n`,
  )
}
