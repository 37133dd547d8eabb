import type { ConnectionState } from './connection.ts'
import type { Link } from './endpoints.ts'
import type { EtcdError } from './errors.ts'
import type { ConnectionNumber } from './protocol/protocol.ts'
import type { Client } from './transport/client.ts'

/** Longer than any call may take. A watch that is still open then resumes on the new connection. */
const retireAfterMs = 30_000
/** Limits the old connections kept for their calls, in case files change every second. */
const retiredMost = 3

export type OpenLink = (onChange: () => void) => Link

/**
 * A connection that can be replaced by one with other credentials while calls are in flight. The
 * old one is used until the new one is ready, so that credentials which etcd refuses do no harm
 * while the old connection lasts; it is closed after the calls on it have ended.
 */
export class RenewableLink implements Link {
  readonly #onChange: () => void
  #current: Link
  #successor: Link | undefined
  readonly #retired = new Map<Link, NodeJS.Timeout>()

  constructor(open: OpenLink, onChange: () => void) {
    this.#onChange = onChange
    this.#current = open(() => this.#changed())
  }

  get inUse(): Link {
    return this.#current
  }

  get client(): Client {
    return this.#current.client
  }

  get state(): ConnectionState {
    return this.#current.state
  }

  get isSilent(): boolean {
    return this.#current.isSilent
  }

  get lastError(): EtcdError | undefined {
    return this.#current.lastError
  }

  get number(): ConnectionNumber {
    return this.#current.number
  }

  get lost(): AbortSignal {
    return this.#current.lost
  }

  /** Why the connection with the latest credentials could not be opened yet. */
  get renewalError(): EtcdError | undefined {
    return this.#successor?.lastError
  }

  noteResponse(): void {
    this.#current.noteResponse()
  }

  /** Opens a new connection and switches to it once it is ready or the old one is lost. */
  renew(open: OpenLink): void {
    this.#successor?.close()
    this.#successor = open(() => this.#changed())
    this.#changed()
  }

  close(): void {
    this.#current.close()
    this.#successor?.close()
    for (const [link, timer] of this.#retired) {
      clearTimeout(timer)
      link.close()
    }
    this.#retired.clear()
  }

  #changed(): void {
    const successor = this.#successor
    if (successor !== undefined && (successor.state === 'ready' || this.state !== 'ready')) {
      this.#retire(this.#current)
      this.#current = successor
      this.#successor = undefined
    }
    this.#onChange()
  }

  #retire(link: Link): void {
    const timer = setTimeout(() => {
      this.#retired.delete(link)
      link.close()
    }, retireAfterMs)
    timer.unref()
    this.#retired.set(link, timer)
    for (const [oldest, pending] of this.#retired) {
      if (this.#retired.size <= retiredMost) break
      clearTimeout(pending)
      this.#retired.delete(oldest)
      oldest.close()
    }
  }
}
