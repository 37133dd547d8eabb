/**
 * Samples the audit lines of requests without valid credentials. Any client can send them, and a
 * flood would push all other lines out of the rotated log files. Some are logged in full; the rest
 * are counted and logged in summaries of the same format.
 */
import { randomUUID } from 'node:crypto'

/**
 * The burst, in seconds of the rate: enough to log every request of one client with a bad token.
 */
const BURST_SECONDS = 50
/** A summary lists the first addresses up to this number. */
const ADDRESSES_MAX = 16
const OMITTED = 'audit.tidings/omitted'

export interface UnauthenticatedSamplerOptions {
  /** The long-term rate of requests that are logged in full; 0 logs all of them. */
  readonly perSecond: number
  /** Monotonic milliseconds. */
  now(): number
}

/** Requests with the same status code that were not logged one by one. */
interface Omitted {
  count: number
  readonly firstAt: string
  lastAt: string
  readonly addresses: Set<string>
}

export class UnauthenticatedSampler {
  readonly #options: UnauthenticatedSamplerOptions
  /** Keyed by status code. */
  readonly #omitted = new Map<number, Omitted>()
  #allowance: number
  #refilledAt: number
  #omittedCount = 0

  constructor(options: UnauthenticatedSamplerOptions) {
    this.#options = options
    this.#allowance = options.perSecond * BURST_SECONDS
    this.#refilledAt = options.now()
  }

  /** Number of requests that were only counted. */
  get omittedCount(): number {
    return this.#omittedCount
  }

  /** Returns whether to log this request in full. */
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

  /** Counts a request that was not admitted. */
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

  /** Returns one line, with its newline, per status code omitted since the last call. */
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
      message: `${count} requests without valid credentials were counted and not logged one by one`,
      code,
    },
    requestReceivedTimestamp: firstAt,
    stageTimestamp: lastAt,
    annotations: { [OMITTED]: String(count) },
  }
  return `${JSON.stringify(event)}\n`
}
