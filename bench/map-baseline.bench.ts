/**
 * What the memory of src/cache/memory saves against a plain `Map` of the same events, each in a
 * process of its own:
 *   npm run bench -- map [events, default 200000]
 *
 * The Map holds what a simple cache would: the body as a Buffer, the version and the fields that
 * selectors read, and a sorted array of keys for pages. Both hold the same stored bytes.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { argv, execPath } from 'node:process'
import { storedEvent } from '../src/cache/memory/made-events.fixture.ts'
import { defaultMemoryBounds, EventMemory } from '../src/cache/memory/memory.ts'
import { monotonicClock } from '../src/lib/clock.ts'
import { versionOfChange, versionOfState } from '../src/storage/resource-version.ts'
import type { StoredEvent } from '../src/storage/storage.ts'
import { benchEvent } from './memory/events.ts'

const MIB = 1024 ** 2
const [, , what = '200000', countText = ''] = argv

if (countText === '') {
  for (const kind of ['map', 'memory']) {
    const child = fork(import.meta.filename, [kind, what], {
      execPath,
      execArgv: ['--expose-gc', '--max-old-space-size=8192'],
    })
    await once(child, 'exit')
  }
} else measure(what, Number(countText))

function measure(kind: string, count: number): void {
  collect()
  const before = process.memoryUsage()
  const cpu = process.cpuUsage()
  const kept = kind === 'map' ? fillMap(count) : fillMemory(count)
  const { user, system } = process.cpuUsage(cpu)
  collect()
  const after = process.memoryUsage()
  const began = performance.now()
  collect()
  const fullGcMs = performance.now() - began
  if (kept === undefined) throw new Error('nothing was loaded')
  process.stdout.write(
    `${kind === 'map' ? 'a plain Map' : 'src/cache/memory'}, ${count} events: ` +
      `${mib(after.rss - before.rss)} MiB resident, ${mib(after.heapUsed - before.heapUsed)} MiB of heap, ` +
      `${((user + system) / 1e6).toFixed(1)} s of CPU to load, full collection ${fullGcMs.toFixed(0)} ms\n`,
  )
}

function collect(): void {
  globalThis.gc?.()
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(0)
}

function loadedEvent(index: number): StoredEvent {
  const { key, body } = benchEvent(index)
  return storedEvent(key, versionOfChange(index + 1, 0), body)
}

function fillMap(count: number): unknown {
  const events = new Map<string, object>()
  const keys: string[] = []
  for (let index = 0; index < count; index++) {
    const { key, body, version, versionOffset, writtenAtMs, fields } = loadedEvent(index)
    const path = `${key.namespace}/${key.name}`
    events.set(path, { body: Buffer.from(body), version, versionOffset, writtenAtMs, fields })
    keys.push(path)
  }
  keys.sort()
  return { events, keys }
}

function fillMemory(count: number): unknown {
  const memory = new EventMemory(defaultMemoryBounds, monotonicClock)
  for (let index = 0; index < count; index++) memory.put(loadedEvent(index))
  memory.reach(versionOfState(count))
  return memory
}
