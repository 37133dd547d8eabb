/**
 * Runs one suite of tools/suites.ts: `npm test -- <suite> [arguments]`. Without a name it runs the unit
 * tests; `npm test -- --list` prints all suites. `ETCD` names another etcd (test/support/etcd.ts).
 */
import process from 'node:process'
import { listing, runPrograms } from './run-programs.ts'
import { NEEDS, programsOf, SUITES } from './suites.ts'

const [name = 'unit', ...args] = process.argv.slice(2)
const suite = SUITES.find((known) => known.name === name)
if (suite === undefined) {
  if (name !== '--list') process.stderr.write(`unknown suite "${name}"\n\n`)
  process.stdout.write(`[ETCD=/path/to/etcd] npm test -- <suite> [arguments]\n\n${listing(SUITES)}`)
  process.exitCode = name === '--list' ? 0 : 1
} else {
  const needed = suite.needs === undefined ? [] : NEEDS[suite.needs]
  try {
    process.exitCode = runPrograms([...needed, ...programsOf(suite, args)])
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
    process.exitCode = 1
  }
}
