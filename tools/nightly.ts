/**
 * Runs the suites and benchmarks that take too long for every change, one after the other, and prints a
 * summary. One that fails does not stop the others; nothing is retried. `npm run nightly -- clocks
 * bench:cost` runs only these.
 */
import process from 'node:process'
import { runPrograms } from './run-programs.ts'
import { BENCHMARKS, type Program, SUITES } from './suites.ts'

/** Ordered as in the table: long tests of CI's suites, then by severity of a failure, then benchmarks. */
const PROGRAMS = new Map<string, Program>()
for (const { name, nightly } of SUITES) {
  if (nightly) PROGRAMS.set(name, ['tools/test.ts', name])
}
for (const { name, nightly } of BENCHMARKS) {
  if (nightly) PROGRAMS.set(`bench:${name}`, ['tools/bench.ts', name])
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !PROGRAMS.has(name))
if (unknown.length > 0) {
  process.stderr.write(`not in the nightly run: ${unknown.join(', ')}\n`)
  process.stderr.write(`it has ${[...PROGRAMS.keys()].join(', ')}\n`)
  process.exit(1)
}
const lines: string[] = []
for (const [name, program] of PROGRAMS) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  process.stdout.write(`\n== ${name}\n`)
  const startedAt = performance.now()
  const status = runPrograms([program])
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
  const line = `${status === 0 ? 'passed' : 'FAILED'}  ${name}, ${minutes} min`
  // Printed here as well, since a run that is cut off never reaches the summary.
  process.stdout.write(`${line}\n`)
  lines.push(line)
  if (status !== 0) process.exitCode = 1
}
process.stdout.write(`\n${lines.join('\n')}\n`)
