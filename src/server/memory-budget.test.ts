import assert from 'node:assert/strict'
import { totalmem } from 'node:os'
import { describe, test } from 'node:test'
import { defaultMemoryBounds } from '../cache/memory/memory.ts'
import { defaultHistoryBounds } from '../cache/watch/history.ts'
import { encodedRunsBytesMax } from '../codec/encoders/encoded-run-cache.ts'
import { DEFAULT_LEDGER_LIMITS } from '../lib/client-memory/ledger.ts'
import { type Log, silentLog } from '../lib/log/log.ts'
import {
  bytesOfHistory,
  logBudget,
  type MemoryBudget,
  memoryBudget,
  memoryLimit,
  warnOfEventBytes,
} from './memory-budget.ts'

const MIB = 1024 * 1024
const DEFAULTS = {
  maxClientMemoryMib: 192,
  maxClientMemoryPerUserMib: 64,
  maxConnections: 20_000,
  maxConnectionsPerUser: 2500,
  maxWatches: 20_000,
  maxWatchesPerUser: 5000,
}
const budgetOf = (mib: number, options = DEFAULTS): MemoryBudget =>
  memoryBudget({ bytes: mib * MIB, source: 'flag' }, options)

function heldBytes({ history, memory, listBytes, clients }: MemoryBudget): number {
  return history.bytesMax + memory.stateBytesMax + listBytes + clients.totalBytes
}

/** Collects the messages of warnings and information. */
function recorded(): { readonly log: Log; readonly said: string[] } {
  const said: string[] = []
  const log = {
    ...silentLog,
    warn: (message: string) => void said.push(`warn: ${message}`),
    info: (message: string) => void said.push(`info: ${message}`),
  }
  return { log, said }
}

describe('the memory limit', () => {
  const limitOf = (flagMib: number, cgroupMib?: number): ReturnType<typeof memoryLimit> =>
    memoryLimit(
      { memoryLimitBytes: flagMib * MIB },
      cgroupMib === undefined ? undefined : cgroupMib * MIB,
    )

  test('is the smallest of the flag, the control group and the machine', () => {
    assert.deepEqual(limitOf(300, 512), { bytes: 300 * MIB, source: 'flag' })
    assert.deepEqual(limitOf(2048, 512), { bytes: 512 * MIB, source: 'cgroup' })
    assert.deepEqual(limitOf(0, 512), { bytes: 512 * MIB, source: 'cgroup' })
    const machine = { bytes: totalmem(), source: 'machine' }
    assert.deepEqual(limitOf(1e9, 1e9), machine)
  })
})

describe('the memory budget', () => {
  test('is what the processes of history leave, and says when that is too little', () => {
    const options = { historyReaderMemoryBytes: 512 * MIB }
    assert.equal(bytesOfHistory({ ...options, history: undefined }), 0)
    const processes = bytesOfHistory({ ...options, history: 'file:///history' })
    assert.equal(processes, (512 + 416 + 192) * MIB)
    const limit = { bytes: 512 * MIB + processes, source: 'cgroup' } as const
    const { eventBytes, historyProcessBytes: taken } = memoryBudget(limit, DEFAULTS, processes)
    assert.deepEqual([eventBytes, taken], [budgetOf(512).eventBytes, processes])
    const { log, said } = recorded()
    logBudget(memoryBudget(limit, DEFAULTS, processes), log)
    logBudget(memoryBudget({ ...limit, bytes: 1024 * MIB }, DEFAULTS, processes), log)
    assert.deepEqual(said, [
      'info: Memory limit',
      'warn: The memory limit is too small: the process may be killed',
    ])
  })

  test('everything has its largest size with 1.5 GiB or more', () => {
    for (const mib of [1536, 2048, 64 * 1024]) {
      const { history, memory, listBytes, clients } = budgetOf(mib)
      assert.deepEqual(history, defaultHistoryBounds)
      assert.deepEqual(memory, defaultMemoryBounds)
      assert.equal(listBytes, encodedRunsBytesMax)
      const { connections, userConnections } = clients
      assert.deepEqual(clients, { ...DEFAULT_LEDGER_LIMITS, connections, userConnections })
    }
  })

  test('caches and clients beside 100,000 events leave space for garbage in 512 MiB', () => {
    const budget = budgetOf(512)
    assert.ok(heldBytes(budget) <= 125 * MIB, String(heldBytes(budget) / MIB))
    // An event of 900 bytes counts for 1,300.
    assert.ok(budget.eventBytes >= 100_000 * 1_300)
    const { clients } = budget
    assert.ok(clients.userBytes <= clients.totalBytes / 3)
    assert.ok(clients.unauthenticatedBytes < clients.userBytes)
  })

  test('everything grows with the limit, and has a minimum', () => {
    const held = [128, 256, 384, 512, 768, 1024, 1536].map((mib) => heldBytes(budgetOf(mib)))
    assert.deepEqual(
      held,
      held.toSorted((a, b) => a - b),
    )
    assert.equal(held[0], 50 * MIB)
    const { eventBytes, loadBytes } = budgetOf(128)
    assert.deepEqual([eventBytes, loadBytes], [8 * MIB, 8 * MIB])
  })

  test('all parts together are within the limit', () => {
    for (const mib of [512, 1024, 1536, 4096]) {
      const budget = budgetOf(mib)
      const { connections, watches } = budget.idle
      const idleBytes = connections * 80 * 1024 + watches * 16 * 1024
      const all = 144 * MIB + heldBytes(budget) + budget.eventBytes + idleBytes
      assert.ok(all <= mib * MIB, `${all / MIB} of ${mib} MiB`)
    }
  })

  test('flags about clients that are not at their default are used as they are', () => {
    const options = { ...DEFAULTS, maxClientMemoryMib: 300, maxClientMemoryPerUserMib: 128 }
    const { clients } = budgetOf(512, options)
    assert.deepEqual([clients.totalBytes, clients.userBytes], [300 * MIB, 128 * MIB])
  })

  test('connections and watches scale with the limit, and have a minimum', () => {
    const numbers = (mib: number): readonly number[] => {
      const { idle, clients } = budgetOf(mib)
      const { connections, userConnections, watches, userWatches, sockets } = idle
      assert.deepEqual(
        [clients.connections, clients.userConnections],
        [connections, userConnections],
      )
      return [connections, userConnections, watches, userWatches, sockets]
    }
    assert.deepEqual(numbers(128), [100, 100, 400, 100, 800])
    assert.deepEqual(numbers(256), [238, 238, 896, 224, 1904])
    assert.deepEqual(numbers(512), [785, 785, 2944, 736, 6280])
    assert.deepEqual(numbers(2048), [4061, 2500, 15_232, 3808, 20_000])
    assert.deepEqual(numbers(16 * 1024), [20_000, 2500, 20_000, 5000, 20_000])
    assert.equal(budgetOf(256).clients.unauthenticatedConnections, 59)
  })

  test('flags about connections and watches that are not at their default are used as they are', () => {
    const options = {
      ...DEFAULTS,
      maxConnections: 900,
      maxConnectionsPerUser: 800,
      maxWatches: 0,
      maxWatchesPerUser: 7,
    }
    const { idle } = budgetOf(256, options)
    assert.deepEqual(
      [idle.connections, idle.userConnections, idle.watches, idle.userWatches],
      [900, 800, 0, 7],
    )
    assert.equal(budgetOf(256, { ...DEFAULTS, maxWatches: 0 }).idle.userWatches, 5000)
    assert.equal(budgetOf(256, { ...DEFAULTS, maxWatches: 8000 }).idle.userWatches, 2000)
  })

  test('the log says at start what the limit is, and that it is too small', () => {
    const { log, said } = recorded()
    logBudget(budgetOf(512), log)
    logBudget(budgetOf(200), log)
    assert.deepEqual(said, [
      'info: Memory limit',
      'warn: The memory limit is too small: the process may be killed',
    ])
  })

  test('the log says once that events take more than their part, and once that they no longer do', () => {
    const { log, said } = recorded()
    const budget = budgetOf(512)
    const events = { eventBytes: 0 }
    const watch = warnOfEventBytes(budget, events, log)
    for (const now of [0, budget.eventBytes, budget.eventBytes + 1, 1e12, 5, 5]) {
      events.eventBytes = now
      watch.check()
    }
    watch.stop()
    assert.deepEqual(said, [
      'warn: Events take more than their part of the memory limit',
      'info: Events take no more than their part of the memory limit again',
    ])
  })
})
