import { AbortListener } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { ConnectionState } from './connection.ts'
import { type EtcdError, errorFromStatus, type FailedStatus, isRetryable } from './errors.ts'
import type { ConnectionNumber, EndpointStatus } from './protocol/protocol.ts'
import type { Client } from './transport/client.ts'

/**
 * How long a member that did not respond in time is avoided. If it is paused or cut off, keepalive
 * (5 s + 3 s) closes its connection within this time, and it is not used until it reconnects.
 */
const suspicionMs = 10_000

/** The connection interface that an endpoint uses; connection.ts implements it. */
export interface Link {
  readonly client: Client
  readonly state: ConnectionState
  /** It is connected, but did not respond to the last probe. */
  readonly isSilent: boolean
  readonly lastError: EtcdError | undefined
  readonly renewalError?: EtcdError | undefined
  /** The number of the current connection, or of the last one. */
  readonly number: ConnectionNumber
  /** Aborts when that connection is lost or closed. */
  readonly lost: AbortSignal
  /** The link that calls use now, if this link can be replaced. */
  readonly inUse?: Link | undefined
  /** To be called for each response on this connection. */
  noteResponse(): void
  close(): void
}

/** One member of the etcd cluster and its connections. */
export class Endpoint {
  /** As configured. */
  readonly name: string
  readonly #calls: Link
  readonly #streams: Link
  readonly #clock: Clock
  #suspectUntil = Number.NEGATIVE_INFINITY
  #lastError: EtcdError | undefined

  /**
   * Streams have a connection of their own, so that a page of a million keys does not delay the
   * changes of a watch.
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
   * The link for one call, from start to end. The call keeps it when credentials are renewed in
   * between, so that its number is never that of another connection.
   */
  link(use: ConnectionUse): Link {
    const link = this.#link(use)
    return link.inUse ?? link
  }

  isSuspect(): boolean {
    return this.#clock.now() < this.#suspectUntil || this.#calls.isSilent
  }

  /** It did not respond in time: prefer other members for a while. */
  suspect(): void {
    this.#suspectUntil = this.#clock.now() + suspicionMs
  }

  /** It responded. */
  trust(): void {
    this.#suspectUntil = Number.NEGATIVE_INFINITY
    this.#lastError = undefined
  }

  /** The error for a failed call; a retryable one is kept for `lastError`. */
  failed(
    status: Pick<FailedStatus, 'code' | 'details' | 'neverSent'>,
    method: { readonly write: boolean },
  ): EtcdError {
    const { code, details, neverSent } = status
    const { write } = method
    const endpoint = this.name
    const error = errorFromStatus({ code, details, neverSent, endpoint, write, cause: status })
    if (isRetryable(error)) this.#lastError = error
    return error
  }

  /** Why it cannot be reached, else the last failure since its last successful response. */
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
 * All members, in the configured order. One member is preferred for as long as it responds; then
 * the next connected member is used.
 */
export class EndpointSet {
  readonly all: readonly Endpoint[]
  readonly #waiting = new Set<() => void>()
  #preferred = 0
  #newest: ConnectionNumber = 0

  /** `nextNumber` returns the number for each connection that is established. */
  constructor(
    make: (onChange: () => void, nextNumber: () => ConnectionNumber) => readonly Endpoint[],
  ) {
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
   * The member to use now: connected, not in `avoid`, suspects last. Undefined when there is none;
   * `changed` then resolves when it is worth picking again.
   */
  pick(
    use: ConnectionUse,
    options?: {
      readonly avoid?: ReadonlySet<Endpoint> | undefined
      readonly among?: readonly Endpoint[] | undefined
      /** Connections up to this number only. */
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

  /** Makes this member, which has just responded, the first choice. */
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
        listener[Symbol.dispose]()
        resolve()
      }
      this.#waiting.add(wake)
      const listener = new AbortListener(signal, wake)
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
