/**
 * Ten times the peak load, five times for each crowd of clients: as many requests as fit into the
 * queue, more than that, and more than that over HTTP/1.1. Prints a line for each run with its
 * verdict; exits with 1 when one is not what the server promises.
 *
 *   npm test -- overload [--runs 5] [--seconds 20] [--crowd http1] [--json]
 *
 * Runs that were slowed down three times and more say little.
 */
import { parseArgs } from 'node:util'
import { CROWDS, complaints, HEALTH_P99_MS_MAX, type OverloadReport, overload } from './overload.ts'

const { values: options } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '20' },
    crowd: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
})
const crowds = Object.entries(CROWDS).filter(
  ([name]) => options.crowd === undefined || options.crowd === name,
)
if (crowds.length === 0) throw new Error(`--crowd is one of ${Object.keys(CROWDS)}`)
for (const [, crowd] of crowds) {
  for (let run = 1; run <= Number(options.runs); run++) {
    const report = await overload(Number(options.seconds) * 1000, crowd)
    const wrong = complaints(report)
    if (wrong.length > 0) process.exitCode = 1
    process.stdout.write(
      `${lineOf(report)}: ${wrong.length === 0 ? 'met' : `MISSED, ${wrong.join('; ')}`}\n`,
    )
    if (options.json) process.stdout.write(`${JSON.stringify(report)}\n`)
  }
}

function lineOf({
  crowd,
  peakPerSecond,
  goodputRatio,
  wallRatio,
  health,
  memoryMib,
  slowness,
  result,
}: OverloadReport): string {
  const { ok, refused, unsent } = result
  return [
    crowd,
    `peak ${peakPerSecond.toFixed(0)}/s`,
    `goodput ${goodputRatio.toFixed(2)} (by the clock ${wallRatio.toFixed(2)})`,
    `health p99 ${health.ownP99Ms.toFixed(0)} ms of ${HEALTH_P99_MS_MAX} (by the clock ${health.p99Ms.toFixed(0)})`,
    `memory ${memoryMib.early.toFixed(0)} to ${memoryMib.late.toFixed(0)} MiB`,
    `slowed ${slowness.toFixed(1)} times by other work`,
    `${ok} served, ${refused} refused, ${unsent} not sent`,
  ].join(', ')
}
