/**
 * Counts how many pods get the right workload by names alone, by events, and by owner references:
 * `npm run workloads`, with a seed as an argument. Fails below the shares in judged-workloads.ts, and
 * when a single pod is assigned to another namespace.
 */
import process from 'node:process'
import { judge, percent, problemsOf, SOURCES, type Wrong } from '../../support/judged-workloads.ts'
import { madeWorkloads } from '../../support/made-workloads.ts'

const WORKLOADS = 500
const PODS = 10_000
const SEED = 1

const seed = Number(process.argv[2] ?? SEED)
const pods = madeWorkloads({ seed, workloads: WORKLOADS, pods: PODS })
const judgement = judge(pods, seed)
const { wrong, crossed } = judgement
const print = (line: string): void => void process.stdout.write(`${line}\n`)

print(`${PODS} pods of ${WORKLOADS} workloads, seed ${seed}`)
print(row(['workloads', 'pods', ...SOURCES.map((source) => `by ${source}`)]))
const kinds = [...new Set(pods.map(({ workload }) => workload.kind))].sort()
for (const kind of [...kinds, 'all']) {
  const isOf = ({ workload }: (typeof pods)[number]) => kind === 'all' || workload.kind === kind
  const count = pods.filter(isOf).length
  const shares = SOURCES.map((source) =>
    percent(1 - wrong[source].filter(({ pod }) => isOf(pod)).length / count),
  )
  print(row([kind, String(count), ...shares]))
}
for (const source of SOURCES) list(`wrong by ${source}`, wrong[source])
list('assigned to another namespace', crossed)

const problems = problemsOf(judgement)
for (const problem of problems) print(`FAILED: ${problem}`)
process.exitCode = problems.length === 0 ? 0 : 1

function row(cells: readonly string[]): string {
  const [first = '', ...others] = cells
  return first.padEnd(24) + others.map((cell) => cell.padStart(12)).join('')
}

/** One line for each workload, with how many of its pods are wrong, and one of them. */
function list(title: string, all: readonly Wrong[]): void {
  print(`\n${title}: ${all.length}`)
  const groups = Map.groupBy(all, ({ pod: { namespace, name, workload }, found }) => {
    const is = workload.kind === 'Pod' && workload.name === name ? 'Pod' : shown(workload)
    const told = found.kind === 'Pod' ? 'Pod' : shown(found)
    return `${is} in ${namespace} is told to be ${told}`
  })
  for (const [what, [one, ...others]] of groups) {
    print(`  ${what}: ${others.length + 1}, such as ${one?.pod.name}`)
  }
}

function shown({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return `${kind} ${name}`
}
