/**
 * What a request costs: the CPU time of our process beside that of a bare Node server with the same
 * TLS, HTTP/2, body and response size, loaded by turns; the bytes that a request allocates; and a
 * profile by folder. A report: it exits with 0 also when a target is missed.
 *
 *   npm run bench -- cost [--rounds 5] [--only create] [--against other/dist/main.js] [--no-profile]
 *
 * `--only` measures the kinds whose names begin so, and may be repeated. `--against` loads another
 * build as well, on the same etcd. With KUBE_APISERVER, a Kubernetes API server takes its turn in
 * creates, gets and pages. Needs h2load (of nghttp2). Appends its figures to `.cache/bench/cost.jsonl`,
 * and prints the last ones of that file beside its own.
 */
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { kubeApiserverBinary } from '../test/support/kube-apiserver.ts'
import { frameWork } from './cost/frames.ts'
import { ProfiledServer } from './cost/profile.ts'
import { BARE, KUBERNETES, OTHER, OURS, PUTS, Report } from './cost/report.ts'
import { CREATE, requestWorks } from './cost/requests.ts'
import { type Side, Sides } from './cost/sides.ts'
import { byTurns, type Run } from './cost/turns.ts'
import { createIn, responseBytes, type Work } from './cost/work.ts'
import { barePutRate } from './support/bare-etcd.ts'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', multiple: true, default: [''] },
    against: { type: 'string' },
    profile: { type: 'boolean', default: true },
  },
  allowNegative: true,
})
const PUT_SECONDS = 2
const SEQUENTIAL_FACTOR = 4

await using sides = await Sides.open()
const ours = await sides.tidings(OURS)
const storedBytes = await responseBytes(ours, createIn('created'))
const works = [...(await requestWorks(ours)), await frameWork(ours)].filter(({ name }) =>
  options.only.some((wanted) => name.startsWith(wanted)),
)
const compared = new Map<string, Side>([
  [OURS, ours],
  [BARE, await sides.bare()],
  ...(options.against === undefined
    ? []
    : [[OTHER, await sides.tidings('other', resolve(options.against))] as const]),
])
const isComparable = works.some((work) => work.isComparable === true)
const kubernetes =
  kubeApiserverBinary === '' || !isComparable ? undefined : await sides.kubernetes()
const report = new Report(join(import.meta.dirname, '../.cache/bench/cost.jsonl'))
for (const work of works) report.add(work, await byTurns(runsOf(work), roundsOf(work)))
report.keep()
if (options.profile) {
  const profiled = await ProfiledServer.start(sides)
  for (const work of works) await profiled.print(work)
}

/** Latency changes more than CPU time, so its runs are short and many. */
function roundsOf(work: Work): number {
  return Number(options.rounds) * (work.isSequential === true ? SEQUENTIAL_FACTOR : 1)
}

function runsOf(work: Work): ReadonlyMap<string, Run> {
  const runs = new Map(
    [...compared].map(([name, side]): [string, Run] => [name, () => work.measure(side)]),
  )
  if (work.name === CREATE) runs.set(PUTS, putRun)
  if (work.isComparable === true && kubernetes !== undefined) {
    runs.set(KUBERNETES, () => work.measure(kubernetes))
  }
  return runs
}

async function putRun(): ReturnType<Run> {
  const endpoint = sides.etcd.endpoints[0] ?? ''
  return { perSecond: await barePutRate(endpoint, PUT_SECONDS, storedBytes) }
}
