/**
 * Bounds what callers without credentials can write into the audit log. Anybody can send such
 * requests, and without a bound a flood of them pushes every other record out of the backups. Some
 * are kept in full; the rest is counted, and summed up in lines of the same form.
 */
import { randomUUID } from 'node:crypto'

/** How many seconds' worth may come at once: a client with a wrong token is seen, not sampled. */
const BURST_SECONDS = 50
/** Addresses that a summary names; of a larger crowd, the first. */
const ADDRESSES_MAX = 16
const OMITTED = 'audit.tidings/omitted'

export interface StrangersOptions {
  /** Requests a second that are kept in full, in the long run; 0 keeps all of them. */
  readonly perSecond: number
  /** Milliseconds that never go back. */
  now(): number
}

/** Requests with the same answer that were not kept one by one. */
interface Omitted {
  count: number
  readonly firstAt: string
  lastAt: string
  readonly addresses: Set<string>
}

export class Strangers {
  readonly #options: StrangersOptions
  /** By the code of the answer. */
  readonly #omitted = new Map<number, Omitted>()
  #allowance: number
  #refilledAt: number
  #omittedCount = 0

  constructor(options: StrangersOptions) {
    this.#options = options
    this.#allowance = options.perSecond * BURST_SECONDS
    this.#refilledAt = options.now()
  }

  /** How many requests were only counted. */
  get omittedCount(): number {
    return this.#omittedCount
  }

  /** Whether this request is kept in full. */
  admit(): boolean {
    const { perSecond } = this.#options
    if (perSecond === 0) return true
    const now = this.#options.now()
    const refilled = this.#allowance + ((now - this.#refilledAt) / 1000) * perSecond
    this.#allowance = Math.min(perSecond * BURST_SECONDS, refilled)
    this.#refilledAt = now
    if (this.#allowance < 1) return false
    this.#allowance -= 1
    return true
  }

  /** A request that was not admitted has been answered. */
  omit(code: number, address: string, at: string): void {
    this.#omittedCount += 1
    let omitted = this.#omitted.get(code)
    if (omitted === undefined) {
      omitted = { count: 0, firstAt: at, lastAt: at, addresses: new Set() }
      this.#omitted.set(code, omitted)
    }
    omitted.count += 1
    omitted.lastAt = at
    if (omitted.addresses.size < ADDRESSES_MAX) omitted.addresses.add(address)
  }

  /** A line for each code since the last call, with their newlines. */
  summaries(): readonly string[] {
    const lines = [...this.#omitted].map(([code, omitted]) => summaryLine(code, omitted))
    this.#omitted.clear()
    return lines
  }
}

function summaryLine(code: number, { count, firstAt, lastAt, addresses }: Omitted): string {
  const event = {
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID: randomUUID(),
    stage: 'ResponseStarted',
    requestURI: '',
    verb: '',
    user: {},
    sourceIPs: [...addresses],
    responseStatus: {
      metadata: {},
      message: `${count} requests of callers without valid credentials were counted and not kept one by one`,
      code,
    },
    requestReceivedTimestamp: firstAt,
    stageTimestamp: lastAt,
    annotations: { [OMITTED]: String(count) },
  }
  return `${JSON.stringify(event)}\n`
}
