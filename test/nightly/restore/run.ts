/**
 * The restore matrix: etcd restored from a snapshot under running replicas, with and without
 * `--bump-revision` and `--mark-compacted`, replicas idle, paused and busy. Prints one row for each
 * run and exits with 1 when a replica served another history. The first argument is the number of
 * runs, 20 by default.
 */
import { print, row } from '../../worlds/campaign.ts'
import { activities, complaints, restore, type Scenario } from './restore.ts'

const runs = Number(process.argv[2] ?? 20)
const aheads = [0, 1, 50] as const

const columns = [
  ['run', 4],
  ['replicas', 9],
  ['flags', 6],
  ['saved', 7],
  ['lost at', 8],
  ['joined at', 10],
  ['ended', 6],
  ['responses', 10],
  ['wrong while ready', 18],
  ['wrong current', 14],
  ['mixed watches', 14],
  ['consistent after', 17],
] as const

const widths = columns.map(([, width]) => width)
print(
  row(
    columns.map(([name]) => name),
    widths,
  ),
)
for (let index = 0; index < runs; index++) {
  const scenario: Scenario = {
    // All 18 of them in rotation.
    activity: activities[index % activities.length] ?? 'idle',
    ahead: aheads[Math.floor(index / activities.length) % aheads.length] ?? 0,
    isBumped: Math.floor(index / (activities.length * aheads.length)) % 2 === 1,
  }
  const report = await restore(scenario)
  const { consistentAfterMs: afterMs } = report
  const cells = [
    index + 1,
    scenario.activity,
    scenario.isBumped ? 'both' : 'none',
    ...report.revisions,
    report.replicasEnded,
    report.answers,
    report.wrongWhileReady,
    report.wrongPresent,
    report.mixedWatches,
    afterMs === undefined ? 'never' : `${(afterMs / 1000).toFixed(1)} s`,
  ]
  print(row(cells, widths))
  const wrong = complaints(report)
  for (const text of [...wrong, ...report.examples]) print(`     ${text}`)
  if (wrong.length > 0) process.exitCode = 1
}
