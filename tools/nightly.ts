/**
 * Runs the suites and benchmarks that take too long for every change, one after the other, and prints a
 * summary. One that fails does not stop the others; nothing is retried. Suites in which etcd decides are
 * repeated with each other etcd that is installed. `npm run nightly -- clocks bench:cost` runs only these, and
 * `clocks@3.7.1` only with that etcd.
 */
import process from 'node:process'
import { otherEtcds, testedEtcds } from './other-etcds.ts'
import { runPrograms } from './run-programs.ts'
import { BENCHMARKS, type Program, SUITES } from './suites.ts'

/** Ordered as in the table: long tests of CI's suites, then by severity of a failure, then benchmarks. */
const RUNS = new Map<string, { readonly program: Program; readonly etcd?: string }>()
for (const { name, nightly, everyEtcd } of SUITES) {
  const program = ['tools/test.ts', name]
  if (nightly) RUNS.set(name, { program })
  for (const { version, program: etcd } of everyEtcd ? otherEtcds : []) {
    RUNS.set(`${name}@${version}`, { program, etcd })
  }
}
for (const { name, nightly } of BENCHMARKS) {
  if (nightly) RUNS.set(`bench:${name}`, { program: ['tools/bench.ts', name] })
}

const wanted = process.argv.slice(2)
const isOf = (run: string, name: string) => run === name || run.startsWith(`${name}@`)
const unknown = wanted.filter((name) => ![...RUNS.keys()].some((run) => isOf(run, name)))
if (unknown.length > 0) {
  process.stderr.write(`not in the nightly run: ${unknown.join(', ')}\n`)
  process.stderr.write(`it has ${[...RUNS.keys()].join(', ')}\n`)
  process.exit(1)
}
const lines: string[] = []
for (const [name, { program, etcd }] of RUNS) {
  if (wanted.length > 0 && !wanted.some((each) => isOf(name, each))) continue
  process.stdout.write(`\n== ${name}\n`)
  const startedAt = performance.now()
  const status = runPrograms([program], etcd)
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
  const line = `${status === 0 ? 'passed' : 'FAILED'}  ${name}, ${minutes} min`
  // Printed here as well, since a run that is cut off never reaches the summary.
  process.stdout.write(`${line}\n`)
  lines.push(line)
  if (status !== 0) process.exitCode = 1
}
process.stdout.write(`\n${lines.join('\n')}\n${testedEtcds()}\n`)
