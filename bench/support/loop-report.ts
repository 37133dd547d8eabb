/**
 * Loaded into a server with NODE_OPTIONS=--import: writes the longest blocks of its event loop into
 * the file that LOOP_REPORT names, several times a second. SIGUSR2 begins anew, after the start.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { PerformanceObserver } from 'node:perf_hooks'
import { LoopHolds } from '../memory/loop-holds.ts'

// biome-ignore lint/style/noProcessEnv: the measured program has flags of its own.
const path = process.env['LOOP_REPORT'] ?? ''
const everyMs = 250

const holds = new LoopHolds()
let longestMs = 0
let ownMs = 0
/** The longest pause for a garbage collection. */
let collectionMs = 0
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) collectionMs = Math.max(collectionMs, duration)
}).observe({ entryTypes: ['gc'] })
process.on('SIGUSR2', () => {
  holds.take()
  longestMs = 0
  ownMs = 0
  collectionMs = 0
})
setInterval(() => {
  const taken = holds.take()
  longestMs = Math.max(longestMs, taken.longestMs)
  ownMs = Math.max(ownMs, taken.ownMs)
  writeFileSync(`${path}.new`, JSON.stringify({ longestMs, ownMs, collectionMs }))
  renameSync(`${path}.new`, path)
}, everyMs).unref()
