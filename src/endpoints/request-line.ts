import type { Trail } from '../gate/gate.ts'
import type { User } from '../gate/user.ts'
import type { Request } from '../http/exchange.ts'
import type { Log } from '../lib/log.ts'
import { shown } from '../lib/shown.ts'

/** `-v` from which every request is logged. */
const LEVEL = 3

/** What became of a request. */
export interface Outcome {
  readonly auditId: string
  readonly verb: string
  readonly status: number
  readonly ms: number
}

/** What the log says of a request, who asked included; never its query, which may hold secrets. */
export class RequestLine implements Trail {
  readonly #log: Log
  /** Hears the same. */
  readonly #next: Trail | undefined
  #shown: User | undefined
  #impersonated: User | undefined

  /** Undefined when requests are not logged: then nothing is noted either. */
  static begun(log: Log, next: Trail | undefined): RequestLine | undefined {
    return log.enabled(LEVEL) ? new RequestLine(log, next) : undefined
  }

  private constructor(log: Log, next: Trail | undefined) {
    this.#log = log
    this.#next = next
  }

  identified(user: User): void {
    this.#shown = user
    this.#next?.identified(user)
  }

  impersonated(user: User): void {
    this.#impersonated = user
    this.#next?.impersonated(user)
  }

  decided(decision: 'allow' | 'forbid' | undefined, reason: string): void {
    this.#next?.decided(decision, reason)
  }

  get isKept(): boolean {
    return this.#next?.isKept === true
  }

  print({ method, path, headers, peer }: Request, { auditId, verb, status, ms }: Outcome): void {
    const sender = this.#impersonated === undefined ? undefined : this.#shown
    this.#log.v(LEVEL, 'HTTP', {
      method,
      verb,
      path,
      status,
      ms: Math.round(ms * 1000) / 1000,
      user: shownOf((this.#impersonated ?? this.#shown)?.name),
      sender: shownOf(sender?.name),
      userAgent: shownOf(headers['user-agent']),
      peer: peer.address,
      auditId,
    })
  }
}

function shownOf(text: string | undefined): string | undefined {
  return text === undefined ? undefined : shown(text)
}
