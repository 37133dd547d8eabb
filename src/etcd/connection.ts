import type { SecureContext } from 'node:tls'
import { Session } from '../grpc/session.ts'
import { Backoff } from '../lib/backoff.ts'
import { EtcdError } from './errors.ts'
import type { ConnectionNumber, ConnectionState } from './protocol/protocol.ts'

/** How long an attempt may take; doubles while members accept connections and send nothing. */
const firstAttemptMs = 2_500
const maxAttemptMs = 10_000
/** The pauses between attempts. */
export const firstBackoffMs = 100
export const maxBackoffMs = 1_000
/** Limits the replaced sessions whose calls have not ended, in case credentials change often. */
const maxDraining = 3

/** Where a member listens. */
export interface MemberAddress {
  /** The host name or address that the member's certificate must be valid for. */
  readonly host: string
  readonly port: number
  readonly isEncrypted: boolean
}

export interface ConnectionOptions {
  /** The URL from the flag, for errors. */
  readonly endpoint: string
  readonly address: MemberAddress
  /** Present only for TLS endpoints. */
  readonly tls: SecureContext | undefined
  /** Called when the state or the session in use has changed. */
  readonly onChange: () => void
  /** Returns the number for a session that has just been established. */
  readonly nextNumber: () => ConnectionNumber
}

/** A session that accepts calls, and its number. */
export interface NumberedSession {
  readonly session: Session
  readonly number: ConnectionNumber
}

/**
 * Keeps one connection to a member open until it is closed. There is at most one session in use and
 * at most one attempt to open the next one, or a pause before that attempt:
 *
 * | state        | session in use | attempt or pause                                    |
 * | ------------ | -------------- | --------------------------------------------------- |
 * | `connecting` | none           | the first one, or the first since a session was lost |
 * | `failing`    | none           | the last attempt failed, see `error`                |
 * | `ready`      | yes            | only to replace the session with renewed credentials |
 * | `closed`     | none           | none                                                |
 *
 * A session is used until its successor is ready, so credentials that etcd refuses do no harm while
 * the session lasts. It then drains: calls in flight end on it, and watches resume on the new one.
 */
export class Connection {
  readonly #options: ConnectionOptions
  readonly #backoff = new Backoff({ firstMs: firstBackoffMs, mostMs: maxBackoffMs })
  #draining: Session[] = []
  #tls: SecureContext | undefined
  #state: ConnectionState = 'connecting'
  #current: NumberedSession | undefined
  #attempt: Session | undefined
  #error: EtcdError | undefined
  #attemptMs = firstAttemptMs
  /** The time limit of the attempt, or the pause before it. */
  #timer: NodeJS.Timeout | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#tls = options.tls
    this.#open()
  }

  get state(): ConnectionState {
    return this.#state
  }

  /** The session for new calls; undefined unless the state is `ready`. */
  get current(): NumberedSession | undefined {
    return this.#current
  }

  /** Why the last attempt failed; undefined once one has succeeded. */
  error(): EtcdError | undefined {
    return this.#error
  }

  /** Closes the session if the member does not respond to a ping; see `Session.ping`. */
  ping(): void {
    this.#current?.session.ping()
  }

  /** Replaces the session by one with these credentials, at once if there is none in use. */
  renew(tls: SecureContext): void {
    if (!this.#options.address.isEncrypted || this.#state === 'closed') return
    this.#tls = tls
    this.#attempt?.destroy()
    this.#open()
  }

  close(): void {
    clearTimeout(this.#timer)
    this.#attempt?.destroy()
    this.#current?.session.destroy()
    this.#current = undefined
    for (const session of this.#draining) session.destroy()
    this.#state = 'closed'
  }

  #open(): void {
    const { host, port, isEncrypted } = this.#options.address
    const session = new Session({
      target: { host, port, tls: isEncrypted ? this.#tls : undefined },
      onReady: () => this.#use(session),
      onEnd: (error) => this.#ended(session, error),
    })
    this.#attempt = session
    this.#schedule(this.#attemptMs, () => {
      this.#attemptMs = Math.min(maxAttemptMs, this.#attemptMs * 2)
      session.destroy()
      this.#failed('it does not respond')
    })
  }

  #use(session: Session): void {
    clearTimeout(this.#timer)
    this.#attempt = undefined
    this.#attemptMs = firstAttemptMs
    this.#error = undefined
    if (this.#current !== undefined) this.#drain(this.#current.session)
    this.#current = { session, number: this.#options.nextNumber() }
    this.#enter('ready')
  }

  #ended(session: Session, error: Error | undefined): void {
    if (session === this.#attempt) {
      session.destroy()
      this.#failed(reasonOf(error))
    } else if (session === this.#current?.session) this.#lost(session)
  }

  /** The attempt failed: the next one follows after a pause. */
  #failed(reason: string): void {
    this.#attempt = undefined
    this.#error = new EtcdError({
      kind: 'unavailable',
      message: `cannot connect: ${reason}`,
      endpoint: this.#options.endpoint,
    })
    this.#schedule(this.#backoff.next(), () => this.#open())
    if (this.#current === undefined) this.#enter('failing')
  }

  #lost(session: Session): void {
    this.#current = undefined
    this.#drain(session)
    const isReplacing = this.#attempt !== undefined || this.#error !== undefined
    if (!isReplacing) this.#reopen(session)
    this.#enter(this.#error === undefined ? 'connecting' : 'failing')
  }

  /** At once, unless sessions are lost before they have carried any response. */
  #reopen(lost: Session): void {
    if (!lost.hasResponded) {
      this.#schedule(this.#backoff.next(), () => this.#open())
      return
    }
    this.#backoff.reset()
    this.#open()
  }

  #drain(session: Session): void {
    session.drain()
    this.#draining = [...this.#draining, session].filter(({ isDestroyed }) => !isDestroyed)
    if (this.#draining.length > maxDraining) this.#draining.shift()?.destroy()
  }

  #enter(state: ConnectionState): void {
    this.#state = state
    this.#options.onChange()
  }

  #schedule(ms: number, run: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(run, ms)
    // Connections must not keep the process alive.
    this.#timer.unref()
  }
}

/** OpenSSL has a short reason besides a message with thread, library and source line. */
function reasonOf(error: (Error & { readonly reason?: unknown }) | undefined): string {
  if (error === undefined) return 'the connection was closed'
  return typeof error.reason === 'string' ? `TLS: ${error.reason}` : error.message
}
