/**
 * Upgrades three replicas behind haproxy one by one under load, rolls them back one by one, and
 * starts the old program on data of the new one:
 * `npm test -- upgrade [--from REF|ARCHIVE] [--to REF|ARCHIVE] [--rounds N]`.
 *
 * Without options: from the newest release (or the commit in test/releases/previous.json) to this
 * tree.
 */
import { parseArgs } from 'node:util'
import { checkData } from '../../releases/check-data.ts'
import { recordRelease } from '../../releases/record.ts'
import { previousRef, programOf, thisTree } from './programs.ts'
import { describeLoad, upgradeAndRollBack } from './upgrade.ts'

const LOAD = { writers: 20, listers: 3, watchers: 6 }

const { values } = parseArgs({
  options: {
    from: { type: 'string' },
    to: { type: 'string' },
    rounds: { type: 'string', default: '1' },
  },
})
const ref = values.from ?? (await previousRef())
if (ref === undefined) throw new Error('this repository has no other version: give --from')
const from = await programOf(ref)
const to = values.to === undefined ? thisTree() : await programOf(values.to)
print(`from ${from.name} to ${to.name} and back`)

const report = await upgradeAndRollBack({
  from,
  to,
  load: LOAD,
  rounds: Number(values.rounds),
  log: print,
})
print(describeLoad(report))
for (const fault of report.faults) print(`FAULT ${fault}`)
if (report.faults.length > 0) process.exitCode = 1
else print('no failed request, nothing lost, duplicated or out of order')

print(`data of ${to.name} for ${from.name}`)
await checkData(await recordRelease(to.file), from.file)
print(`${from.name} reads, lists, watches, changes and expires what ${to.name} has stored`)

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
