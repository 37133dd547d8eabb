/** Everything that decides how much comes in at once, and counts it, put together from the options. */
import { Counter, type Registry } from '@prometheus-io/client'
import { about } from './about.ts'
import { type RequestObserver, RequestTallies } from './endpoints/request-tallies.ts'
import type { FileLooks } from './file-metrics.ts'
import { byteLimits, EventLimits, sourceOf } from './gate/limits/event-limits.ts'
import { followEventLimits } from './gate/limits/event-limits-file.ts'
import { RequestLimits } from './gate/limits/limits.ts'
import { RefusalPace } from './gate/limits/refusal-pace.ts'
import { RefusedCallers } from './gate/limits/refused-callers.ts'
import { monotonicClock } from './lib/clock.ts'
import type { MemoryLedger } from './lib/ledger.ts'
import type { Log } from './lib/log.ts'
import type { Options } from './options/options.ts'
import { limitsObserver, showLimits, showRefused, showRequests } from './request-metrics.ts'

/** What else is served besides events of our own group. */
const OTHERS = [
  '/v1/events',
  'authentication.k8s.io/v1/selfsubjectreviews',
  'authorization.k8s.io/v1/selfsubjectaccessreviews',
  'authorization.k8s.io/v1/selfsubjectrulesreviews',
]

export interface Admission {
  readonly limits: RequestLimits
  readonly observer: RequestObserver
  readonly eventLimits: EventLimits
  /** Stops looking at files. */
  stop(): void
}

export interface AdmissionParts {
  readonly looks?: FileLooks
  /** How much etcd has, from 1 to 0. */
  readonly room?: () => number
  /** Its refusals are counted with the others. */
  readonly ledger?: MemoryLedger
}

/** Rejects, naming the flag, when a file cannot be used. */
export async function openAdmission(
  options: Options,
  registry: Registry,
  log: Log,
  { looks, room, ledger }: AdmissionParts = {},
): Promise<Admission> {
  const callers = new RefusedCallers({ log, clock: monotonicClock })
  if (ledger !== undefined) {
    ledger.onRefused = (user, limit) => callers.refused(user, '', `memory: ${limit}`)
  }
  showRefused(callers, registry)
  const limits = new RequestLimits({
    requestsInFlight: options.maxRequestsInflight,
    mutatingRequestsInFlight: options.maxMutatingRequestsInflight,
    watches: options.maxWatches,
    watchesPerUser: options.maxWatchesPerUser,
    observer: limitsObserver(registry, callers),
    // A part of the time that a request has: it waits for a place as well.
    pace: new RefusalPace({ heldMsMax: options.requestTimeoutMs / 4 }),
  })
  showLimits(limits, registry)
  const tallies = new RequestTallies([`${options.eventsGroup}/v1/events`, ...OTHERS])
  showRequests(tallies, registry)
  const eventLimits = openLimits(options, registry, { callers, room })
  const follower = await followLimits(eventLimits, options, log, looks)
  return { limits, observer: tallies, eventLimits, stop: () => follower?.stop() }
}

/** Limits of bytes always hold, those of a file as long as there is one. */
function openLimits(
  options: Options,
  registry: Registry,
  {
    callers,
    room,
  }: { readonly callers: RefusedCallers; readonly room?: (() => number) | undefined },
): EventLimits {
  const refused = new Counter({
    name: 'tidings_event_rate_limited_total',
    help: 'Events that were turned away with 429 because of a limit of events or bytes a second.',
    labelNames: ['type', 'unit'],
    registers: [registry],
  })
  return new EventLimits({
    limits: byteLimits(options.maxWriteBytesPerSecond),
    room,
    onRefused: (type, unit, write) => {
      refused.inc({ type, unit })
      const { name } = write.sender ?? write.user
      callers.refused(name, sourceOf(write.event), `${type}: ${unit}`)
    },
  })
}

async function followLimits(
  eventLimits: EventLimits,
  { eventRateLimitConfigFile: path }: Options,
  log: Log,
  looks?: FileLooks,
): Promise<{ stop(): void } | undefined> {
  if (path === undefined) return undefined
  const flag = '--event-rate-limit-config-file'
  return about(flag, followEventLimits(eventLimits, path, log, looks?.(flag)))
}
