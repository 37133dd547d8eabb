import type { Client } from '@grpc/grpc-js'
import type { Clock } from '../lib/clock.ts'
import type { ConnectionState } from './connection.ts'
import { type EtcdError, errorFromStatus, isWorthAnotherTry } from './errors.ts'
import type { ConnectionNumber, EndpointStatus } from './protocol.ts'

/**
 * How long a member that kept somebody waiting is passed over. If it is paused or cut off, its
 * connection is found dead within this time (keepalive: 5 s + 3 s) and it stays out until it is back.
 */
const suspicionMs = 10_000

/** What an endpoint needs of its connections; the real one is in connection.ts. */
export interface Link {
  readonly client: Client
  readonly state: ConnectionState
  /** It is connected but did not answer when it was last tried out. */
  readonly isSilent: boolean
  readonly lastError: EtcdError | undefined
  readonly renewalError?: EtcdError | undefined
  /** Of the connection there is, or the last one there was. */
  readonly number: ConnectionNumber
  /** Aborts when that connection is lost or closed. */
  readonly lost: AbortSignal
  /** The link that calls go over now, where this one can be replaced. */
  readonly inUse?: Link | undefined
  /** To be told when something was answered on it. */
  noteAnswer(): void
  close(): void
}

/** One member as we see it. */
export class Endpoint {
  /** As configured. */
  readonly name: string
  readonly #calls: Link
  readonly #streams: Link
  readonly #clock: Clock
  #suspectUntil = Number.NEGATIVE_INFINITY
  #lastError: EtcdError | undefined

  /**
   * Streams have a connection of their own, so that a page of a million keys does not stand before
   * the changes of a watch.
   */
  constructor(options: {
    readonly name: string
    readonly calls: Link
    readonly streams: Link
    readonly clock: Clock
  }) {
    this.name = options.name
    this.#calls = options.calls
    this.#streams = options.streams
    this.#clock = options.clock
  }

  isReady(use: ConnectionUse): boolean {
    return this.#link(use).state === 'ready'
  }

  connection(use: ConnectionUse): ConnectionNumber {
    return this.#link(use).number
  }

  /**
   * For one call, from its start to its end: it stays the link of the call when credentials are renewed
   * meanwhile, so that its number is never that of another connection.
   */
  link(use: ConnectionUse): Link {
    const link = this.#link(use)
    return link.inUse ?? link
  }

  isSuspect(): boolean {
    return this.#clock.now() < this.#suspectUntil || this.#calls.isSilent
  }

  /** It kept somebody waiting: prefer others for a while. */
  suspect(): void {
    this.#suspectUntil = this.#clock.now() + suspicionMs
  }

  /** It answered. */
  trust(): void {
    this.#suspectUntil = Number.NEGATIVE_INFINITY
    this.#lastError = undefined
  }

  /** What a call to it that failed means; a fault of the member is kept for `lastError`. */
  failed(
    status: { readonly code: number; readonly details: string },
    method: { readonly write: boolean },
  ): EtcdError {
    const { code, details } = status
    const { write } = method
    const error = errorFromStatus({ code, details, endpoint: this.name, write, cause: status })
    if (isWorthAnotherTry(error)) this.#lastError = error
    return error
  }

  /** Why it cannot be reached, else what it has failed with since it last served. */
  lastError(): EtcdError | undefined {
    return this.#calls.lastError ?? this.#lastError
  }

  status(): EndpointStatus {
    return {
      endpoint: this.name,
      state: this.#calls.state,
      lastError: this.lastError(),
      renewalError: this.#calls.renewalError,
    }
  }

  close(): void {
    this.#calls.close()
    this.#streams.close()
  }

  #link(use: ConnectionUse): Link {
    return use === 'calls' ? this.#calls : this.#streams
  }
}

export type ConnectionUse = 'calls' | 'streams'

/**
 * All members, in the configured order. We stay with one for as long as it serves us, and move to
 * the next that is connected when it does not.
 */
export class EndpointSet {
  readonly all: readonly Endpoint[]
  readonly #waiting = new Set<() => void>()
  #preferred = 0
  #newest: ConnectionNumber = 0

  /** `take` gives each connection that is made its number. */
  constructor(make: (onChange: () => void, take: () => ConnectionNumber) => readonly Endpoint[]) {
    this.all = make(
      () => this.#wakeAll(),
      () => ++this.#newest,
    )
  }

  /** The number of the newest connection to any member. */
  get newest(): ConnectionNumber {
    return this.#newest
  }

  find(name: string): Endpoint | undefined {
    return this.all.find((endpoint) => endpoint.name === name)
  }

  /**
   * The member to turn to now: connected, not in `avoid`, suspects last. Undefined when there is
   * none; `changed` then tells when to ask again.
   */
  pick(
    use: ConnectionUse,
    options?: {
      readonly avoid?: ReadonlySet<Endpoint> | undefined
      readonly among?: readonly Endpoint[] | undefined
      /** Only over connections up to this one. */
      readonly connectionMax?: ConnectionNumber | undefined
    },
  ): Endpoint | undefined {
    const connectionMax = options?.connectionMax ?? Number.POSITIVE_INFINITY
    let suspect: Endpoint | undefined
    for (let step = 0; step < this.all.length; step++) {
      const endpoint = this.all[(this.#preferred + step) % this.all.length]
      if (endpoint === undefined || !endpoint.isReady(use)) continue
      if (endpoint.connection(use) > connectionMax) continue
      if (options?.avoid?.has(endpoint) === true) continue
      if (options?.among !== undefined && !options.among.includes(endpoint)) continue
      if (!endpoint.isSuspect()) return endpoint
      suspect ??= endpoint
    }
    return suspect
  }

  /** Stay with this one: it served us. */
  prefer(endpoint: Endpoint): void {
    const index = this.all.indexOf(endpoint)
    if (index >= 0) this.#preferred = index
  }

  /** Resolves when any connection changes its state or the signal aborts. */
  changed(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const wake = () => {
        this.#waiting.delete(wake)
        signal.removeEventListener('abort', wake)
        resolve()
      }
      this.#waiting.add(wake)
      signal.addEventListener('abort', wake)
    })
  }

  close(): void {
    for (const endpoint of this.all) endpoint.close()
    this.#wakeAll()
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake()
  }
}
