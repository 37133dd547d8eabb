/**
 * Loaded into a server with NODE_OPTIONS=--import. Each SIGUSR2 takes the next step: start a CPU
 * profile, write it, start a profile of allocations, write that, and so on. The two are separate
 * because recording allocations takes time. Step n ends with a file of that name in the folder that
 * PROFILE_FOLDER names.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'

// biome-ignore lint/style/noProcessEnv: the measured program has flags of its own.
const folder = process.env['PROFILE_FOLDER'] ?? ''
/** One allocation in so many bytes is recorded. */
const SAMPLING_BYTES = 16 * 1024
const SAMPLING_MICROS = 250

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.setSamplingInterval', { interval: SAMPLING_MICROS })
const steps: readonly (() => Promise<unknown>)[] = [
  () => session.post('Profiler.start'),
  async () => (await session.post('Profiler.stop')).profile,
  () =>
    // What was collected meanwhile counts too: it had to be allocated.
    session.post('HeapProfiler.startSampling', {
      samplingInterval: SAMPLING_BYTES,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    }),
  async () => (await session.post('HeapProfiler.stopSampling')).profile,
]
let taken = 0
process.on('SIGUSR2', () => void step(taken++))

/** Whoever waits for the file finds all of it. */
async function step(number: number): Promise<void> {
  const found = await steps[number % steps.length]?.()
  const file = join(folder, String(number))
  writeFileSync(`${file}.new`, JSON.stringify(found ?? {}))
  renameSync(`${file}.new`, file)
}
