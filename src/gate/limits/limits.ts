/**
 * How much may be under way at once: reads, writes and watches, each with bounds of their own, and
 * shared fairly among users.
 */
import { coreFieldNames, eventFieldNames, parseFieldSelector } from '../../api/field-selector.ts'
import { type StatusError, tooManyRequests } from '../../api/status.ts'
import type { Peer, Request } from '../../http/exchange.ts'
import { type Clock, monotonicClock } from '../../lib/clock.ts'
import type { Attributes } from '../attributes.ts'
import { isMaster, type User } from '../user.ts'
import {
  type Entering,
  FairPlaces,
  immediatePlaces,
  type Place,
  type RefusalReason,
} from './fair-places.ts'
import { isProbePath, ProbePlaces } from './probe-places.ts'
import { RefusalPace } from './refusal-pace.ts'
import { WatchPlaces, type WatchRefusal } from './watch-places.ts'

/**
 * How long a request may wait for a place: at least so long, longer the more there are, and up to
 * half as long again. Those who came together had better not leave together.
 */
const WAIT_MS_MIN = 1000
const WAIT_MS_PER_WAITING = 1
const WAIT_STEPS = 10
/** Whoever would have to wait longer than this had better not begin. */
const FIRST_WAIT_MS_MAX = 4000
/** One that is to be refused and has not been told yet is let in all the same, up to this age. */
const LATE_MS = 5000
/** Node keeps a list for each length of time there is a timer of: with few of them timers are cheap. */
const WAIT_ROUND_MS = 100
/** Requests of each kind that may wait. Each holds its headers and its stream. */
const WAITING_MAX = 4000
/** What may lie here of bodies that nobody has read yet: more than that is refused without a wait. */
const UNREAD_BYTES_MAX = 64 * 1024 * 1024
/** Room that is kept for masters, on top of what everybody shares, as a part of that. */
const MASTERS_PART = 0.1
/** Seconds to choose from for coming back: those who were turned away together come back apart. */
const RETRY_SECONDS = [1, 2, 3, 4]
const RETRY_WATCH_SECONDS = [5, 6, 7, 8, 9, 10, 11, 12]
/**
 * Responses to requests that were given no place: 401, and 429 itself. Each is there for a moment
 * unless its client does not read it.
 */
const REFUSED_PLACES = 2000
const REFUSED_PLACES_PER_USER = 250
/** Verbs that concern many events. */
const MANY: ReadonlySet<string> = new Set(['list', 'watch', 'deletecollection'])
/**
 * A list of this many counts as one place, and none as more than the other. Lists keep the processor
 * busy: many at once are no faster, and everybody else waits for all of them.
 */
const EVENTS_PER_PLACE = 100
const WIDTH_MAX = 20
const READING: ReadonlySet<string> = new Set(['get', 'list', 'watch', 'head'])

export type RequestKind = 'readOnly' | 'mutating'

/** Hears of those who wait, and of those who are turned away. */
export interface LimitsObserver {
  waited(kind: RequestKind, waitedMs: number, hasPlace: boolean): void
  refused(kind: RequestKind | 'watch', reason: RefusalReason | WatchRefusal, user: string): void
}

/** 0 means no bound. */
export interface LimitsOptions {
  readonly requestsInFlight: number
  readonly mutatingRequestsInFlight: number
  readonly watches: number
  readonly watchesPerUser: number
  readonly observer?: LimitsObserver
  /** From 0 up to 1. */
  readonly random?: () => number
  readonly clock?: Clock
  readonly pace?: RefusalPace
}

/** A request that asks to be let in. */
export interface Entrant {
  readonly user: User
  readonly attributes: Attributes
  /** Whoever is no longer there waits no longer. */
  readonly request: Pick<Request, 'signal' | 'query' | 'unreadBytesMax'> & { readonly peer?: Peer }
  /** What it asks for is open to all. */
  readonly isOpen?: boolean
}

/** A request's place among those under way, until it is disposed of. */
export interface Entry extends Disposable {
  /** A watch has begun, and no longer counts among the requests: only among the watches. */
  settle(): void
}

/** Knows how much is too much. */
export interface Limits {
  /**
   * For the response to a request that was given no place, by its user or, of a stranger, its
   * address. Undefined when there are too many of these that are not read.
   */
  enterRefused(key: string): Disposable | undefined
  /** Throws or rejects with 429 and a time to come back. */
  enter(entrant: Entrant): Entry | Promise<Entry>
}

/** The limits of one replica. */
export class RequestLimits implements Limits {
  readonly #rooms: Readonly<Record<RequestKind, Room>>
  readonly #probes = new ProbePlaces()
  readonly #refused = immediatePlaces(REFUSED_PLACES, REFUSED_PLACES_PER_USER)
  readonly #watches: WatchPlaces
  readonly #observer: LimitsObserver | undefined
  readonly #random: () => number
  readonly #clock: Clock
  readonly #pace: RefusalPace
  /** Of those who wait, or are to be refused and have not been told. */
  #unreadBytes = 0
  #isReleased = false

  constructor(options: LimitsOptions) {
    const { observer, random = Math.random, clock = monotonicClock } = options
    this.#observer = observer
    this.#random = random
    this.#clock = clock
    this.#pace = options.pace ?? new RefusalPace()
    this.#rooms = {
      readOnly: this.#room('readOnly', bound(options.requestsInFlight)),
      mutating: this.#room('mutating', bound(options.mutatingRequestsInFlight)),
    }
    this.#watches = new WatchPlaces(bound(options.watches), bound(options.watchesPerUser))
  }

  /** Requests that have been let in; watches count only while they begin. */
  inFlight(kind: RequestKind): number {
    const { shared, forMasters } = this.#rooms[kind]
    return shared.entered + forMasters.entered
  }

  /** Requests that wait for a place. */
  inQueue(kind: RequestKind): number {
    return this.#rooms[kind].shared.waiting
  }

  /** Requests that are to be turned away, and have not been told yet. */
  get turningAway(): number {
    return this.#pace.held
  }

  /** Nobody will send another request: who is to be refused may know at once. */
  release(): void {
    this.#isReleased = true
    this.#pace.release()
  }

  get watching(): number {
    return this.#watches.held
  }

  enter(entrant: Entrant): Entry | Promise<Entry> {
    const { user, attributes } = entrant
    if (!attributes.isResource && isProbePath(attributes.path)) {
      const { request, isOpen = false } = entrant
      const place = this.#probes.tryEnter({ user, peer: request.peer, isOpen })
      // Without one it is a read like others.
      if (place !== undefined)
        return { settle: () => {}, [Symbol.dispose]: () => place[Symbol.dispose]() }
    }
    const watch = attributes.verb === 'watch' ? this.#watches.enter(user.name) : undefined
    if (typeof watch === 'string') return this.#refuseWatch(entrant, watch)
    const kind = READING.has(attributes.verb) ? 'readOnly' : 'mutating'
    const { shared, forMasters } = this.#rooms[kind]
    const entering = { user: user.name, width: widthOf(entrant) }
    const place =
      shared.tryEnter(entering) ?? (isMaster(user) ? forMasters.tryEnter(entering) : undefined)
    if (place !== undefined) return this.#entry(place, watch)
    return this.#wait(entering, { kind, watch, request: entrant.request })
  }

  enterRefused(key: string): Disposable | undefined {
    // At shutdown all are told at once.
    return this.#isReleased ? UNCOUNTED : this.#refused.tryEnter({ user: key, width: 1 })
  }

  async #wait(entering: Entering, waiting: Waiting): Promise<Entry> {
    const { kind, watch, request } = waiting
    const { unreadBytesMax = 0 } = request
    const since = this.#clock.now()
    this.#unreadBytes += unreadBytesMax
    try {
      if (this.#unreadBytes > UNREAD_BYTES_MAX)
        throw this.#refusal(kind, 'queue-full', entering.user)
      const place = await this.#rooms[kind].shared.wait(entering, request.signal)
      if (typeof place !== 'string') return this.#entry(place, watch)
      return await this.#turnAway(entering, { ...waiting, reason: place, since })
    } catch (error) {
      watch?.[Symbol.dispose]()
      throw error
    } finally {
      this.#unreadBytes -= unreadBytesMax
    }
  }

  /** Tells it when its turn has come, unless there is room by then: the crowd may be gone. */
  async #turnAway(
    entering: Entering,
    { kind, watch, request, reason, since }: Waiting & { reason: RefusalReason; since: number },
  ): Promise<Entry> {
    // Others may watch in the meantime.
    watch?.[Symbol.dispose]()
    try {
      await this.#pace.turn(request.signal)
    } catch (error) {
      this.#observer?.refused(kind, reason, entering.user)
      throw error
    }
    const isLate = watch !== undefined || this.#clock.now() - since >= LATE_MS
    const place = isLate ? undefined : this.#rooms[kind].shared.tryEnter(entering)
    if (place !== undefined) return this.#entry(place, undefined)
    throw this.#refusal(kind, reason, entering.user)
  }

  #refusal(kind: RequestKind, reason: RefusalReason, user: string): StatusError | undefined {
    this.#observer?.refused(kind, reason, user)
    return this.#oneOf(REFUSALS)
  }

  #entry(place: Place, watch: Place | undefined): Entry {
    const leave = (): void => place[Symbol.dispose]()
    return {
      settle: leave,
      [Symbol.dispose]: () => {
        this.#pace.served()
        leave()
        watch?.[Symbol.dispose]()
      },
    }
  }

  /** In turn like others: watches come back all at once when a replica has gone. */
  async #refuseWatch({ user, request }: Entrant, reason: WatchRefusal): Promise<Entry> {
    this.#observer?.refused('watch', reason, user.name)
    await this.#pace.turn(request.signal)
    throw this.#oneOf(WATCH_REFUSALS[reason])
  }

  #oneOf(refusals: readonly StatusError[]): StatusError | undefined {
    return refusals[Math.floor(this.#random() * refusals.length)]
  }

  #room(kind: RequestKind, limit: number): Room {
    const waitMs = (waiting: number): number => {
      const ms = WAIT_MS_MIN + waiting * WAIT_MS_PER_WAITING
      const spread = ms * (1 + Math.floor(this.#random() * WAIT_STEPS) / (2 * WAIT_STEPS))
      return Math.ceil(spread / WAIT_ROUND_MS) * WAIT_ROUND_MS
    }
    return {
      shared: new FairPlaces({
        limit,
        waitingMax: WAITING_MAX,
        firstWaitMsMax: FIRST_WAIT_MS_MAX,
        waitMs,
        clock: this.#clock,
        onWaited: (waitedMs, hasPlace) => this.#observer?.waited(kind, waitedMs, hasPlace),
      }),
      forMasters: immediatePlaces(Math.ceil(limit * MASTERS_PART)),
    }
  }
}

/** Made once: clients may be turned away by the thousand, and a stack trace is half of the cost. */
const REFUSALS: readonly StatusError[] = RETRY_SECONDS.map((seconds) =>
  tooManyRequests('Too many requests, please try again later.', seconds),
)
const WATCH_REFUSALS: Readonly<Record<WatchRefusal, readonly StatusError[]>> = {
  'watches-full': RETRY_WATCH_SECONDS.map((seconds) =>
    tooManyRequests('this replica has all the watches it can carry', seconds),
  ),
  'user-watches-full': RETRY_WATCH_SECONDS.map((seconds) =>
    tooManyRequests('this user has all the watches it may have on this replica', seconds),
  ),
}

interface Waiting {
  readonly kind: RequestKind
  readonly watch: Place | undefined
  readonly request: Entrant['request']
}

interface Room {
  readonly shared: FairPlaces
  /**
   * Taken when the shared room is full: whoever mends the cluster gets in, and still cannot drown
   * the server.
   */
  readonly forMasters: FairPlaces
}

/** Many events at once take more time and memory than one, by as much as there are. */
function widthOf({ attributes, request }: Entrant): number {
  if (!MANY.has(attributes.verb)) return 1
  // Without its namespace, an event of that name is looked for among all.
  if (attributes.isResource && attributes.name !== '' && attributes.namespace !== '') return 1
  if (attributes.verb === 'watch' && isFromVersion(request.query)) return 1
  if (isOfOneObject(request.query)) return 1
  // A page of what is selected may take a look at everything.
  if (request.query.has('labelSelector') || request.query.has('fieldSelector')) return WIDTH_MAX
  const limit = Number(request.query.get('limit') ?? 0)
  return limit > 0 ? Math.min(Math.ceil(limit / EVENTS_PER_PLACE), WIDTH_MAX) : WIDTH_MAX
}

/** The events of one object are few, and found without looking at others. */
function isOfOneObject(query: URLSearchParams): boolean {
  const selector = query.get('fieldSelector') ?? ''
  if (!selector.includes('.uid')) return false
  return [eventFieldNames, coreFieldNames].some((names) => {
    try {
      return parseFieldSelector(selector, names).some(
        ({ field, operator }) => field === 'regarding.uid' && operator === '=',
      )
    } catch {
      // Not in these names, or refused later by whoever is asked for such a list.
      return false
    }
  })
}

/** Only what has changed since is told, unless what was there before is asked for as well. */
function isFromVersion(query: URLSearchParams): boolean {
  const version = query.get('resourceVersion') ?? ''
  const sendsInitial = query.get('sendInitialEvents') ?? 'false'
  return version !== '' && version !== '0' && sendsInitial.toLowerCase() === 'false'
}

function bound(limit: number): number {
  return limit === 0 ? Number.POSITIVE_INFINITY : limit
}

const UNCOUNTED: Entry = { settle: () => {}, [Symbol.dispose]: () => {} }
