/** Concurrency limits: reads, writes and watches have separate slots, shared fairly by users. */
import { type StatusError, tooManyRequests } from '../../api/status.ts'
import type { Peer, Request } from '../../http/exchange.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'
import type { StoredSizes } from '../../storage/stored-sizes.ts'
import type { Target } from '../target.ts'
import { accountOf, isMaster, type User } from '../user.ts'
import {
  FairSlots,
  type RefusalReason,
  type Slot,
  type SlotRequest,
  slotsWithoutQueue,
} from './fair-slots.ts'
import { ProbeSlots } from './probe-slots.ts'
import { RefusalPace } from './refusal-pace.ts'
import { widthOf } from './request-width.ts'
import { type WatchRefusal, WatchSlots } from './watch-slots.ts'

/**
 * A request may wait for a slot for this minimum, plus a time per waiting request, plus up to half
 * of both at random: requests that arrived together must not leave together.
 */
const WAIT_MS_MIN = 1000
const WAIT_MS_PER_WAITING = 1
const WAIT_STEPS = 10
/** A request is refused if another one of the same user has waited for this long. */
const FIRST_WAIT_MS_MAX = 4000
/** Up to this age, a request whose 429 is held back is still admitted when a slot is free. */
const LATE_MS = 5000
/** Waits are rounded up: Node has one list of timers per duration, so few durations are cheap. */
const WAIT_ROUND_MS = 100
/** How many requests of each kind may wait. Their bytes are charged to their users. */
const WAITING_MAX = 4000
/** Slots reserved for masters in addition to the shared ones, as a fraction of those. */
const MASTERS_PART = 0.1
/** Choices of Retry-After, so that clients that were refused together retry at different times. */
const RETRY_SECONDS: Seconds = [1, 2, 3, 4]
const RETRY_WATCH_SECONDS: Seconds = [5, 6, 7, 8, 9, 10, 11, 12]
type Seconds = readonly [number, ...number[]]
const READING: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'head'])

export type RequestKind = 'readOnly' | 'mutating'

/** Is notified of requests that waited, and of refused ones. */
export interface LimitsObserver {
  waited(kind: RequestKind, waitedMs: number, hasSlot: boolean): void
  refused(kind: RequestKind | 'watch', reason: RefusalReason | WatchRefusal, user: string): void
}

/** 0 means no limit. */
export interface LimitsOptions {
  readonly requestsInFlight: number
  readonly mutatingRequestsInFlight: number
  readonly watches: number
  readonly watchesPerUser: number
  readonly observer?: LimitsObserver
  /** Returns a number from 0 up to 1. */
  readonly random?: () => number
  readonly clock?: Clock
  readonly pace?: RefusalPace
  /** How much a list may have to read. If it is undefined, every list counts as a long one. */
  readonly sizes?: Pick<StoredSizes, 'of'> | undefined
}

/** A request that needs a slot. */
export interface Entrant {
  readonly user: User
  readonly target: Target
  /** Its signal ends the wait. */
  readonly request: Pick<Request, 'signal' | 'headers'> & { readonly peer?: Peer }
  /** Whether its path is open to all clients. */
  readonly isOpen?: boolean
  /** Whether its service is about the server itself. */
  readonly isAboutServer?: boolean
}

/** An admitted request. Disposing of it gives everything back. */
export interface Entry extends Disposable {
  /**
   * Gives the slots back when the work is done and the request only waits: for its client or, if it
   * is a watch, for changes. A watch still counts as a watch.
   */
  settle(): void
}

/** Admits requests, or refuses them. */
export interface Limits {
  /** Throws or rejects with 429 and a Retry-After. */
  enter(entrant: Entrant): Entry | Promise<Entry>
}

export class RequestLimits implements Limits {
  readonly #pools: Readonly<Record<RequestKind, SlotPools>>
  readonly #probes = new ProbeSlots()
  readonly #watches: WatchSlots
  readonly #observer: LimitsObserver | undefined
  readonly #random: () => number
  readonly #clock: Clock
  readonly #pace: RefusalPace
  readonly #sizes: Pick<StoredSizes, 'of'> | undefined

  constructor(options: LimitsOptions) {
    const { observer, random = Math.random, clock = monotonicClock } = options
    this.#observer = observer
    this.#random = random
    this.#clock = clock
    this.#sizes = options.sizes
    this.#pace = options.pace ?? new RefusalPace()
    this.#pools = {
      readOnly: this.#makePools('readOnly', bound(options.requestsInFlight)),
      mutating: this.#makePools('mutating', bound(options.mutatingRequestsInFlight)),
    }
    this.#watches = new WatchSlots(bound(options.watches), bound(options.watchesPerUser))
  }

  /** Number of admitted requests. A watch counts only until its initial events are sent. */
  inFlight(kind: RequestKind): number {
    const { shared, forMasters } = this.#pools[kind]
    return shared.entered + forMasters.entered
  }

  /** Number of requests that wait for a slot. */
  inQueue(kind: RequestKind): number {
    return this.#pools[kind].shared.waiting
  }

  /** Number of requests whose 429 is held back. */
  get turningAway(): number {
    return this.#pace.held
  }

  /** Called when no new requests are accepted: all 429 responses are sent at once from then on. */
  release(): void {
    this.#pace.release()
  }

  get watching(): number {
    return this.#watches.held
  }

  enter(entrant: Entrant): Entry | Promise<Entry> {
    const { user, target } = entrant
    if (entrant.isAboutServer === true) {
      const { request, isOpen = false } = entrant
      const slot = this.#probes.tryEnter({ user, peer: request.peer, isOpen })
      // Otherwise it needs a slot like any other read.
      if (slot !== undefined) return new AdmittedRequest(this.#pace, slot, undefined)
    }
    const kind = READING.has(target.verb) ? 'readOnly' : 'mutating'
    const { shared, forMasters } = this.#pools[kind]
    const wanted = { user: accountOf(user), width: widthOf(target, entrant.request, this.#sizes) }
    const watch = target.verb === 'watch' ? this.#watches.enter(wanted.user) : undefined
    if (typeof watch === 'string') return this.#refuseWatch(entrant, watch)
    const slot =
      shared.tryEnter(wanted) ?? (isMaster(user) ? forMasters.tryEnter(wanted) : undefined)
    if (slot !== undefined) return new AdmittedRequest(this.#pace, slot, watch)
    return this.#wait(wanted, { kind, watch, request: entrant.request })
  }

  async #wait(wanted: SlotRequest, waiting: Waiting): Promise<Entry> {
    const { kind, watch, request } = waiting
    const since = this.#clock.now()
    try {
      const slot = await this.#pools[kind].shared.wait(wanted, request.signal)
      if (typeof slot !== 'string') return new AdmittedRequest(this.#pace, slot, watch)
      return await this.#turnAway(wanted, { ...waiting, reason: slot, since })
    } catch (error) {
      watch?.[Symbol.dispose]()
      throw error
    }
  }

  /** Holds the 429 back, and admits the request after all if a slot is free when it is due. */
  async #turnAway(
    wanted: SlotRequest,
    { kind, watch, request, reason, since }: Waiting & { reason: RefusalReason; since: number },
  ): Promise<Entry> {
    // Other users may use this watch slot in the meantime.
    watch?.[Symbol.dispose]()
    try {
      await this.#pace.hold(request.signal)
    } catch (error) {
      this.#observer?.refused(kind, reason, wanted.user)
      throw error
    }
    const isLate = watch !== undefined || this.#clock.now() - since >= LATE_MS
    const slot = isLate ? undefined : this.#pools[kind].shared.tryEnter(wanted)
    if (slot !== undefined) return new AdmittedRequest(this.#pace, slot, undefined)
    throw this.#refusal(kind, reason, wanted.user)
  }

  #refusal(kind: RequestKind, reason: RefusalReason, user: string): StatusError {
    this.#observer?.refused(kind, reason, user)
    return this.#oneOf(REFUSALS)
  }

  /** Held back like other refusals: when a replica stops, all its watches arrive here at once. */
  async #refuseWatch({ user, request }: Entrant, reason: WatchRefusal): Promise<Entry> {
    this.#observer?.refused('watch', reason, accountOf(user))
    await this.#pace.hold(request.signal)
    throw this.#oneOf(WATCH_REFUSALS[reason])
  }

  #oneOf(refusals: Refusals): StatusError {
    return refusals[Math.floor(this.#random() * refusals.length)] ?? refusals[0]
  }

  #makePools(kind: RequestKind, limit: number): SlotPools {
    const waitMs = (waiting: number): number => {
      const ms = WAIT_MS_MIN + waiting * WAIT_MS_PER_WAITING
      const spread = ms * (1 + Math.floor(this.#random() * WAIT_STEPS) / (2 * WAIT_STEPS))
      return Math.ceil(spread / WAIT_ROUND_MS) * WAIT_ROUND_MS
    }
    return {
      shared: new FairSlots({
        limit,
        waitingMax: WAITING_MAX,
        firstWaitMsMax: FIRST_WAIT_MS_MAX,
        waitMs,
        clock: this.#clock,
        onWaited: (waitedMs, hasSlot) => this.#observer?.waited(kind, waitedMs, hasSlot),
      }),
      forMasters: slotsWithoutQueue(Math.ceil(limit * MASTERS_PART)),
    }
  }
}

class AdmittedRequest implements Entry {
  readonly #pace: RefusalPace
  readonly #slot: Slot
  readonly #watch: Slot | undefined
  #isSettled = false

  constructor(pace: RefusalPace, slot: Slot, watch: Slot | undefined) {
    this.#pace = pace
    this.#slot = slot
    this.#watch = watch
  }

  settle(): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#pace.served()
    this.#slot[Symbol.dispose]()
  }

  [Symbol.dispose](): void {
    this.settle()
    this.#watch?.[Symbol.dispose]()
  }
}

type Refusals = readonly [StatusError, ...StatusError[]]

/** Created once: thousands of clients may be refused, and a stack trace is half the cost. */
const REFUSALS: Refusals = refusals('Too many requests, please try again later.', RETRY_SECONDS)
const WATCH_REFUSALS: Readonly<Record<WatchRefusal, Refusals>> = {
  'watches-full': refusals('this replica has reached its limit of watches', RETRY_WATCH_SECONDS),
  'user-watches-full': refusals(
    'this user has reached its limit of watches on this replica',
    RETRY_WATCH_SECONDS,
  ),
}

function refusals(message: string, [first, ...others]: Seconds): Refusals {
  const refusal = (seconds: number): StatusError => tooManyRequests(message, seconds)
  return [refusal(first), ...others.map(refusal)]
}

interface Waiting {
  readonly kind: RequestKind
  readonly watch: Slot | undefined
  readonly request: Entrant['request']
}

interface SlotPools {
  readonly shared: FairSlots
  /**
   * Used when the shared slots are taken: an administrator who repairs the cluster is admitted, and
   * still cannot overload the server.
   */
  readonly forMasters: FairSlots
}

function bound(limit: number): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : limit
}
