import type { Trail } from '../../gate/gate.ts'
import { accountOf, type User } from '../../gate/user.ts'
import type { Request } from '../../http/exchange.ts'
import type { Log } from '../../lib/log/log.ts'
import { truncate } from '../../lib/text/truncate.ts'

/** The lowest verbosity (`-v`) at which every request is logged. */
const LEVEL = 3

export interface Outcome {
  readonly auditId: string
  readonly verb: string
  readonly status: number
  readonly ms: number
}

/** The log line of a request. It omits the query, which may contain secrets. */
export class RequestLine implements Trail {
  readonly #log: Log
  /** Receives the same calls. */
  readonly #next: Trail | undefined
  #sender: User | undefined
  #impersonated: User | undefined

  /** Returns undefined when requests are not logged. */
  static start(log: Log, next: Trail | undefined): RequestLine | undefined {
    return log.enabled(LEVEL) ? new RequestLine(log, next) : undefined
  }

  private constructor(log: Log, next: Trail | undefined) {
    this.#log = log
    this.#next = next
  }

  identified(user: User): void {
    this.#sender = user
    this.#next?.identified(user)
  }

  impersonated(user: User): void {
    this.#impersonated = user
    this.#next?.impersonated(user)
  }

  decided(decision: 'allow' | 'forbid' | undefined, reason: string): void {
    this.#next?.decided(decision, reason)
  }

  get isRecorded(): boolean {
    return this.#next?.isRecorded === true
  }

  write({ method, path, headers, peer }: Request, { auditId, verb, status, ms }: Outcome): void {
    const sender = this.#impersonated === undefined ? undefined : this.#sender
    this.#log.v(LEVEL, 'HTTP', {
      method,
      verb,
      path,
      status,
      ms: Math.round(ms * 1000) / 1000,
      user: shown(this.#impersonated ?? this.#sender),
      sender: shown(sender),
      userAgent: truncated(headers['user-agent']),
      peer: peer.address,
      auditId,
    })
  }
}

function shown(user: User | undefined): string | undefined {
  return user === undefined ? undefined : truncate(accountOf(user))
}

function truncated(text: string | undefined): string | undefined {
  return text === undefined ? undefined : truncate(text)
}
