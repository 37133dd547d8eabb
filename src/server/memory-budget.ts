/**
 * Sizes caches and the memory for clients by the memory that the process may take. The program's own
 * memory comes first. Of the rest, a third is for caches, recent changes and clients
 * (with 1.5 GiB they are as large as they get), 0.36 for the events, and up to seven twenty-fourths
 * for idle connections and watches (idle-clients.ts): all of them are rarely full at once, and what
 * is not used is for garbage. Writes are admitted by the part of the events
 * (src/registry/admission), and a replica loads no more than leaves it within the limit.
 */

import { totalmem } from 'node:os'
import type { Registry } from '@prometheus-io/client'
import { defaultMemoryBounds, type MemoryBounds } from '../cache/memory/memory.ts'
import { defaultHistoryBounds, type HistoryBounds } from '../cache/watch/history.ts'
import { encodedRunsBytesMax } from '../codec/encoders/encoded-run-cache.ts'
import { WRITING_MEMORY_BYTES } from '../history/history.ts'
import { DEFAULT_LEDGER_LIMITS, type LedgerLimits } from '../lib/client-memory/ledger.ts'
import { cgroupMemoryLimit } from '../lib/files/cgroup.ts'
import type { Log } from '../lib/log/log.ts'
import { limitFlags, memoryLimitBytesMin } from '../options/limit-flags.ts'
import type { Options } from '../options/options.ts'
import { type IdleClientOptions, type IdleClients, idleClients } from './idle-clients.ts'
import { warnOfMissingSettings } from './launcher-settings.ts'
import { registerClientNumberMetrics, registerMemoryLimitMetrics } from './metrics/client-memory.ts'

const MIB = 1024 * 1024
/** The program without events, connections and garbage. */
const PROGRAM_BYTES = 144 * MIB
/**
 * Each of the processes that write and read history, without what DuckDB counts. The one that merges
 * files ends when it has nothing to do.
 */
const HISTORY_PROCESS_BYTES = 96 * MIB
/** Parts of what the program leaves. */
const HELD_PART = 1 / 3
const EVENTS_PART = 0.36
const LOAD_PART = 0.4
/** Below these, watchers and lists would be served by etcd, and clients be refused, all the time. */
const LEAST = { history: 8 * MIB, states: 8 * MIB, lists: 2 * MIB, clients: 32 * MIB }
/** No write would ever be admitted with a smaller part. */
const MIN_EVENT_BYTES = 8 * MIB
const MIN_ANONYMOUS_BYTES = 4 * MIB
const MIN_ANONYMOUS_CONNECTIONS = 32
const EVENTS_CHECK_MS = 60_000

/** The origin of the limit. */
export type LimitSource = 'flag' | 'cgroup' | 'machine'

export interface MemoryLimit {
  readonly bytes: number
  readonly source: LimitSource
}

export interface MemoryBudget {
  readonly limit: MemoryLimit
  /** What the processes of history may take of it. */
  readonly historyProcessBytes: number
  /** Whether something is smaller than it could be. */
  readonly isReduced: boolean
  /** Limit of the events' memory: writes are admitted by it. */
  readonly eventBytes: number
  /** The same limit while a replica starts: its other parts are still empty. */
  readonly loadBytes: number
  readonly history: HistoryBounds
  readonly memory: MemoryBounds
  readonly listBytes: number
  readonly clients: LedgerLimits
  readonly idle: IdleClients
}

/**
 * The memory that this process and those of history may take: the smallest of what the flag, the
 * control group and the machine allow. A flag above the others would not prevent the process from
 * being killed.
 */
export function memoryLimit(
  { memoryLimitBytes }: Pick<Options, 'memoryLimitBytes'>,
  cgroupBytes: number | undefined = cgroupMemoryLimit(),
): MemoryLimit {
  const limits: MemoryLimit[] = [{ bytes: totalmem(), source: 'machine' }]
  if (cgroupBytes !== undefined) limits.push({ bytes: cgroupBytes, source: 'cgroup' })
  if (memoryLimitBytes > 0) limits.push({ bytes: memoryLimitBytes, source: 'flag' })
  return limits.reduce((least, limit) => (limit.bytes < least.bytes ? limit : least))
}

/** What the processes of history take of the limit: any replica may be elected to write. */
export function bytesOfHistory({
  history,
  historyReaderMemoryBytes,
}: Pick<Options, 'history' | 'historyReaderMemoryBytes'>): number {
  if (history === undefined) return 0
  return historyReaderMemoryBytes + WRITING_MEMORY_BYTES + 2 * HISTORY_PROCESS_BYTES
}

type ClientOptions = Pick<Options, 'maxClientMemoryMib' | 'maxClientMemoryPerUserMib'> &
  IdleClientOptions

export function memoryBudget(
  limit: MemoryLimit,
  options: ClientOptions,
  historyProcessBytes = 0,
): MemoryBudget {
  const rest = Math.max(0, limit.bytes - historyProcessBytes - PROGRAM_BYTES)
  const most = {
    history: defaultHistoryBounds.bytesMax,
    states: defaultMemoryBounds.stateBytesMax,
    lists: encodedRunsBytesMax,
    clients: DEFAULT_LEDGER_LIMITS.totalBytes,
  }
  const mostTogether = Object.values(most).reduce((sum, bytes) => sum + bytes, 0)
  const scale = Math.min(1, (rest * HELD_PART) / mostTogether)
  const sized = (what: keyof typeof most): number =>
    Math.max(LEAST[what], Math.floor(most[what] * scale))
  const idle = idleClients(rest, options)
  return {
    limit,
    historyProcessBytes,
    isReduced: scale < 1,
    eventBytes: Math.max(MIN_EVENT_BYTES, Math.floor(rest * EVENTS_PART)),
    loadBytes: Math.max(MIN_EVENT_BYTES, Math.floor(rest * LOAD_PART)),
    history: { ...defaultHistoryBounds, bytesMax: sized('history') },
    memory: { ...defaultMemoryBounds, stateBytesMax: sized('states') },
    listBytes: sized('lists'),
    clients: { ...clientLimits(sized('clients'), options), ...connectionLimits(idle) },
    idle,
  }
}

/** A flag that is not at its default is an operator's decision, and is used as it is. */
function clientLimits(totalSized: number, options: ClientOptions): LedgerLimits {
  const { maxClientMemoryMib: total, maxClientMemoryPerUserMib: user } = options
  const isTotalSet = total !== limitFlags.maxClientMemoryMib.default
  const isUserSet = user !== limitFlags.maxClientMemoryPerUserMib.default
  const totalBytes = isTotalSet ? total * MIB : totalSized
  const anonymousBytes = Math.max(MIN_ANONYMOUS_BYTES, Math.floor(totalBytes / 12))
  const { unauthenticatedBytes, connectionBytes } = DEFAULT_LEDGER_LIMITS
  return {
    ...DEFAULT_LEDGER_LIMITS,
    totalBytes,
    userBytes: isUserSet ? user * MIB : Math.min(user * MIB, Math.floor(totalBytes / 3)),
    unauthenticatedBytes: Math.min(unauthenticatedBytes, anonymousBytes),
    connectionBytes: Math.min(connectionBytes, anonymousBytes),
  }
}

/** Unauthenticated connections take as much memory as others. */
function connectionLimits({
  connections,
  userConnections,
}: IdleClients): Pick<
  LedgerLimits,
  'connections' | 'userConnections' | 'unauthenticatedConnections'
> {
  const anonymousConnections = Math.max(MIN_ANONYMOUS_CONNECTIONS, Math.floor(connections / 4))
  const { unauthenticatedConnections } = DEFAULT_LEDGER_LIMITS
  return {
    connections,
    userConnections,
    unauthenticatedConnections: Math.min(unauthenticatedConnections, anonymousConnections),
  }
}

/** The budget of this process. Logs it and registers its metrics. */
export function openBudget(options: Options, log: Log, registry: Registry): MemoryBudget {
  const limit = memoryLimit(options)
  if (options.memoryLimitBytes > limit.bytes) {
    const fields = { limitMib: Math.floor(limit.bytes / MIB), source: limit.source }
    log.warn('--memory-limit is above what the process may take, and is not used', fields)
  }
  const budget = memoryBudget(limit, options, bytesOfHistory(options))
  logBudget(budget, log)
  // V8 sizes its heap by the control group and the machine, but does not know of the flag.
  if (limit.source === 'flag') {
    warnOfMissingSettings(log, budget.isReduced ? Math.floor(limit.bytes / MIB) : undefined)
  } else if (limit.source === 'cgroup' && budget.isReduced) warnOfMissingSettings(log)
  const parts = {
    all: budget.limit.bytes,
    'history-processes': budget.historyProcessBytes,
    events: budget.eventBytes,
    history: budget.history.bytesMax,
    states: budget.memory.stateBytesMax,
    lists: budget.listBytes,
    clients: budget.clients.totalBytes,
  }
  registerMemoryLimitMetrics(parts, registry)
  const { connections, userConnections, watches, userWatches } = budget.idle
  const numbers = { connections, 'user-connections': userConnections }
  registerClientNumberMetrics({ ...numbers, watches, 'user-watches': userWatches }, registry)
  return budget
}

/** Logs the limit, with a warning if it is too small. */
export function logBudget(budget: MemoryBudget, log: Log): void {
  const { limit, historyProcessBytes: processes, history, clients, idle } = budget
  const fields = {
    limitMib: Math.floor(limit.bytes / MIB),
    ...(processes > 0 && { historyProcessesMib: Math.floor(processes / MIB) }),
    source: limit.source,
    historyMib: Math.floor(history.bytesMax / MIB),
    clientsMib: Math.floor(clients.totalBytes / MIB),
    ...(idle.isReduced && { connections: idle.connections, watches: idle.watches }),
  }
  const bytesMin = memoryLimitBytesMin + processes
  if (limit.bytes < bytesMin) {
    const taken = (PROGRAM_BYTES + processes) / MIB
    const help = `give the container ${bytesMin / MIB}Mi or more: the program alone takes ${taken}`
    log.warn('The memory limit is too small: the process may be killed', { ...fields, help })
  } else log.info('Memory limit', fields)
}

/**
 * Warns when the events begin to take more than their part, and reports when they no longer do. Other
 * replicas may have a higher limit, and admit more.
 */
export function warnOfEventBytes(
  { eventBytes, limit }: Pick<MemoryBudget, 'eventBytes' | 'limit'>,
  events: { readonly eventBytes: number },
  log: Log,
): { stop(): void; check(): void } {
  let isOver = false
  const check = (): void => {
    const now = events.eventBytes
    if (now > eventBytes === isOver) return
    isOver = now > eventBytes
    const [eventsMib, partMib, limitMib] = [now, eventBytes, limit.bytes].map((n) =>
      Math.round(n / MIB),
    )
    const fields = { eventsMib, partMib, limitMib }
    if (isOver) {
      const help = 'raise the memory limit, shorten --event-ttl, or write a budget for retention'
      log.warn('Events take more than their part of the memory limit', { ...fields, help })
    } else log.info('Events take no more than their part of the memory limit again', fields)
  }
  const timer = setInterval(check, EVENTS_CHECK_MS)
  timer.unref()
  return { stop: () => clearInterval(timer), check }
}
