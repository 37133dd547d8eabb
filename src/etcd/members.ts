import type { SecureContext } from 'node:tls'
import type { CallFailure } from '../grpc/call-failure.ts'
import { AbortListener } from '../lib/abort.ts'
import type { Clock } from '../lib/clock.ts'
import type { Connection, NumberedSession } from './connection.ts'
import { type EtcdError, errorOfCall, isRetryable } from './errors.ts'
import type { ConnectionNumber, EndpointStatus } from './protocol/protocol.ts'

/**
 * How long a member that did not respond in time is avoided. If it is paused or cut off, the ping
 * closes its connection within this time, 8.5 s at most, and it is not used until it reconnects.
 */
const suspicionMs = 10_000

export type ConnectionUse = 'calls' | 'streams'

/** One member of the etcd cluster and its connections. */
export class Member {
  /** The URL from the flag. */
  readonly name: string
  readonly #calls: Pick<Connection, keyof Connection>
  readonly #streams: Pick<Connection, keyof Connection>
  readonly #clock: Clock
  #suspectUntil = Number.NEGATIVE_INFINITY
  #lastError: EtcdError | undefined

  /**
   * Streams have a connection of their own, so that a page of a million keys does not delay the
   * changes of a watch.
   */
  constructor(options: {
    readonly name: string
    readonly calls: Pick<Connection, keyof Connection>
    readonly streams: Pick<Connection, keyof Connection>
    readonly clock: Clock
  }) {
    this.name = options.name
    this.#calls = options.calls
    this.#streams = options.streams
    this.#clock = options.clock
  }

  /** The session for a new call or stream; undefined while the member is not connected. */
  session(use: ConnectionUse): NumberedSession | undefined {
    return use === 'calls' ? this.#calls.current : this.#streams.current
  }

  isSuspect(): boolean {
    return this.#clock.now() < this.#suspectUntil
  }

  /**
   * The member did not respond in time: other members are preferred for a while, and a ping finds
   * out whether the connection is at fault.
   */
  suspect(): void {
    this.#suspectUntil = this.#clock.now() + suspicionMs
    this.#calls.ping()
    this.#streams.ping()
  }

  /** The member responded. */
  trust(): void {
    this.#suspectUntil = Number.NEGATIVE_INFINITY
    this.#lastError = undefined
  }

  /** The error for a failed call; a retryable one is remembered for `error`. */
  failed(failure: CallFailure, isWrite: boolean): EtcdError {
    const error = errorOfCall(failure, { endpoint: this.name, isWrite })
    if (isRetryable(error)) this.#lastError = error
    return error
  }

  /** Why it cannot be reached, otherwise the last failure since its last successful response. */
  error(): EtcdError | undefined {
    return this.#connectError() ?? this.#lastError
  }

  status(): EndpointStatus {
    const isReady = this.#calls.state === 'ready'
    return {
      endpoint: this.name,
      state: this.#calls.state,
      lastError: this.error(),
      renewalError: isReady ? this.#calls.error() : undefined,
    }
  }

  /** Ignored for members without TLS. */
  renew(tls: SecureContext): void {
    this.#calls.renew(tls)
    this.#streams.renew(tls)
  }

  close(): void {
    this.#calls.close()
    this.#streams.close()
  }

  #connectError(): EtcdError | undefined {
    return this.#calls.state === 'ready' ? undefined : this.#calls.error()
  }
}

/**
 * All members, in the configured order. One member is preferred for as long as it responds; then
 * the next connected member is used.
 */
export class Members {
  readonly all: readonly Member[]
  readonly #waiting = new Set<() => void>()
  #preferred = 0
  #newest: ConnectionNumber = 0

  /** `nextNumber` returns the number for each session that is established. */
  constructor(
    open: (onChange: () => void, nextNumber: () => ConnectionNumber) => readonly Member[],
  ) {
    this.all = open(
      () => this.#wakeAll(),
      () => ++this.#newest,
    )
  }

  /** The number of the newest connection to any member. */
  get newest(): ConnectionNumber {
    return this.#newest
  }

  find(name: string): Member | undefined {
    return this.all.find((member) => member.name === name)
  }

  /**
   * The member to use now: connected, not in `avoid`, suspects last. Undefined when there is none;
   * `changed` then resolves when it is worth picking again.
   */
  pick(
    use: ConnectionUse,
    options?: {
      readonly avoid?: ReadonlySet<Member> | undefined
      readonly among?: readonly Member[] | undefined
      /** Excludes members whose connection has a higher number. */
      readonly connectionMax?: ConnectionNumber | undefined
    },
  ): Member | undefined {
    const connectionMax = options?.connectionMax ?? Number.POSITIVE_INFINITY
    let suspect: Member | undefined
    for (let step = 0; step < this.all.length; step++) {
      const member = this.all[(this.#preferred + step) % this.all.length]
      const session = member?.session(use)
      if (member === undefined || session === undefined) continue
      if (session.number > connectionMax) continue
      if (options?.avoid?.has(member) === true) continue
      if (options?.among !== undefined && !options.among.includes(member)) continue
      if (!member.isSuspect()) return member
      suspect ??= member
    }
    return suspect
  }

  /** Makes this member, which has just responded, the first choice. */
  prefer(member: Member): void {
    const index = this.all.indexOf(member)
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
    for (const member of this.all) member.close()
    this.#wakeAll()
  }

  #wakeAll(): void {
    for (const wake of [...this.#waiting]) wake()
  }
}
