/** Runs one benchmark of tools/suites.ts: `npm run bench -- <name> [arguments]`. */
import process from 'node:process'
import { listing, runPrograms } from './run-programs.ts'
import { BENCHMARKS, NEEDS } from './suites.ts'

const [name = '--list', ...args] = process.argv.slice(2)
const benchmark = BENCHMARKS.find((known) => known.name === name)
if (benchmark === undefined) {
  if (name !== '--list') process.stderr.write(`unknown benchmark "${name}"\n\n`)
  process.stdout.write(`npm run bench -- <name> [arguments]\n\n${listing(BENCHMARKS)}`)
  process.exitCode = name === '--list' ? 0 : 1
} else {
  const needed = benchmark.needs === undefined ? [] : NEEDS[benchmark.needs]
  process.exitCode = runPrograms([...needed, [...benchmark.program, ...args]])
}
