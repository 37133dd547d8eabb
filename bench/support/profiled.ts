/**
 * Loaded into a server with NODE_OPTIONS=--import: SIGUSR2 starts a CPU profile and a profile of
 * allocations, and the next one writes both into the folder that PROFILE_FOLDER names.
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
let isRunning = false

process.on('SIGUSR2', () => void (isRunning ? stop() : start()))

async function start(): Promise<void> {
  isRunning = true
  await session.post('Profiler.enable')
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLING_MICROS })
  // What was collected meanwhile counts too: it had to be allocated.
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: SAMPLING_BYTES,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  })
  await session.post('Profiler.start')
  write('started', '')
}

async function stop(): Promise<void> {
  isRunning = false
  const { profile: cpu } = await session.post('Profiler.stop')
  const { profile: heap } = await session.post('HeapProfiler.stopSampling')
  write('profile', JSON.stringify({ cpu, heap }))
}

/** Whoever waits for the file finds all of it. */
function write(name: string, text: string): void {
  writeFileSync(join(folder, `${name}.new`), text)
  renameSync(join(folder, `${name}.new`), join(folder, name))
}
