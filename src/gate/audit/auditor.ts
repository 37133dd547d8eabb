import type { Request } from '../../http/exchange.ts'
import type { Attributes } from '../attributes.ts'
import { MicroTimes } from './audit-event.ts'
import type { AuditLevel } from './audit-policy.ts'
import { type AuditSink, AuditTrail, type TrailShared } from './audit-trail.ts'
import { UnauthenticatedSampler } from './unauthenticated-sampling.ts'

export interface AuditorOptions extends AuditSink {
  /** Requests per second without valid credentials that are logged in full; 0 logs all of them. */
  readonly unauthenticatedPerSecond?: number | undefined
  /** Monotonic milliseconds. */
  now?(): number
}

/** Writes the audit log, as the policy wants it. */
export class Auditor {
  readonly #options: AuditorOptions
  readonly #levels: Record<AuditLevel, number> = {
    None: 0,
    Metadata: 0,
    Request: 0,
    RequestResponse: 0,
  }
  /** For responses that are generated elsewhere and must have the same id. */
  readonly #ids = new WeakMap<Request, string>()
  readonly #sampler: UnauthenticatedSampler
  readonly #shared: TrailShared
  #eventCount = 0

  constructor(options: AuditorOptions) {
    this.#options = options
    const times = new MicroTimes()
    this.#sampler = new UnauthenticatedSampler({
      perSecond: options.unauthenticatedPerSecond ?? 0,
      now: () => options.now?.() ?? performance.now(),
    })
    this.#shared = {
      sampler: this.#sampler,
      timeText: (ms) => times.text(ms),
      ruled: (level) => {
        this.#levels[level] += 1
      },
      written: () => {
        this.#eventCount += 1
      },
    }
  }

  /** Number of requests by level. */
  get levels(): Readonly<Record<AuditLevel, number>> {
    return this.#levels
  }

  /** Number of lines given to `write`. */
  get eventCount(): number {
    return this.#eventCount
  }

  /** Number of requests that were only counted. */
  get omittedCount(): number {
    return this.#sampler.omittedCount
  }

  /** Writes summaries of the requests that were only counted since the last call. */
  summarize(): void {
    for (const line of this.#sampler.summaries()) {
      this.#shared.written()
      this.#options.write(line)
    }
  }

  begin(request: Request, attributes: Attributes, auditId: string): AuditTrail {
    this.#ids.set(request, auditId)
    return new AuditTrail({ request, attributes, auditId }, this.#options, this.#shared)
  }

  /** The audit id of a request. */
  idOf(request: Request): string | undefined {
    return this.#ids.get(request)
  }
}
