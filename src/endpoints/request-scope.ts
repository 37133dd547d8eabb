import { randomUUID } from 'node:crypto'
import type { StatusReason } from '../api/status.ts'
import type { Attributes } from '../gate/attributes.ts'
import type { Auditor } from '../gate/audit/auditor.ts'
import type { Trail } from '../gate/gate.ts'
import type { Entry } from '../gate/limits/limits.ts'
import { isStream, type Request, type Response, type Sent } from '../http/exchange.ts'
import type { Log } from '../lib/log/log.ts'
import { withoutTokens } from '../lib/log/token-scrub.ts'
import type { Tracer } from '../tracing/tracer.ts'
import { AuditRecord, type Failure } from './observe/audit-record.ts'
import { RequestLine } from './observe/request-line.ts'
import type { RequestObserver } from './observe/request-tallies.ts'
import { RequestTrace } from './observe/request-trace.ts'
import { HandlerStillRuns } from './request/timeout.ts'

/** A longer id is not from an audit trail, and only wastes memory and log space. */
const AUDIT_ID_MAX = 128

export interface ScopeOptions {
  readonly observer: RequestObserver
  /** If undefined, requests are not audited. */
  readonly audit?: Auditor | undefined
  /** If undefined, requests are not traced. */
  readonly tracer?: Tracer | undefined
  readonly log: Log
}

/**
 * Owns the slots, the trace, the audit record and the metrics of a request. Until `respond` has
 * handed them to the response, disposing of the scope releases them; afterwards the end of the
 * response does. Either happens once.
 *
 * Slots are for work. They are given back as soon as the response only has to be sent: before its
 * first byte or, if it is produced while it is sent, when it waits for its client.
 */
export class RequestScope implements Disposable {
  readonly auditId: string
  readonly attributes: Attributes
  readonly record: AuditRecord | undefined
  readonly trace: RequestTrace | undefined
  readonly #line: RequestLine | undefined
  readonly #request: Request
  readonly #observer: RequestObserver
  readonly #startedAt = performance.now()
  #entry: Entry | undefined
  /** Set when a handler still works after its client got a response. */
  #lateWork: Promise<void> | undefined
  #isLong = false
  #isHandedOver = false
  #isEnded = false

  constructor(request: Request, attributes: Attributes, options: ScopeOptions) {
    const { audit } = options
    this.auditId = auditIdOf(request)
    this.attributes = attributes
    this.record = audit && new AuditRecord(audit.begin(request, attributes, this.auditId), request)
    this.trace = RequestTrace.begin(options.tracer, request)
    this.#line = RequestLine.start(options.log, this.record?.trail)
    this.#request = request
    this.#observer = options.observer
  }

  /** Is notified of what the gate learns about the request. */
  get trail(): Trail | undefined {
    return this.#line ?? this.record?.trail
  }

  /** Takes over the slots of the request. */
  hold(entry: Entry): void {
    this.#entry = entry
  }

  failed(reason: StatusReason): void {
    this.#observer.failed?.(this.attributes, reason)
  }

  /** Records the outcome. Resolves with the response when it may be sent. */
  async complete(response: Response, failure?: Failure, thrown?: unknown): Promise<Response> {
    if (thrown instanceof HandlerStillRuns) this.#lateWork = thrown.ended
    else if (!isStream(response.body) && response.longRunning !== true) this.#entry?.settle()
    if (failure !== undefined) this.failed(failure.error.reason)
    return this.record === undefined ? response : this.record.complete(response, failure)
  }

  /** Returns the response to send, which owns everything from now on. */
  respond(response: Response): Response {
    const { attributes, auditId } = this
    const { onEnd, longRunning, settled, isWatchList } = response
    this.#line?.write(this.#request, {
      auditId,
      verb: attributes.verb,
      status: response.status,
      ms: performance.now() - this.#startedAt,
    })
    this.trace?.responding(response, {
      request: this.#request,
      auditId,
      attributes,
      labels: this.#observer.labelsOf?.(attributes),
    })
    this.#isLong = longRunning === true
    if (this.#isLong) this.#observer.begun(attributes)
    const entry = this.#entry
    const settle = (): void => {
      if (this.#lateWork === undefined) entry?.settle()
    }
    if (this.#isLong) {
      if (settled === undefined) settle()
      else void settled.then(settle)
    }
    if (isWatchList === true) {
      void settled?.then(() =>
        this.#observer.listed?.(attributes, performance.now() - this.#startedAt),
      )
    }
    this.#isHandedOver = true
    return {
      ...response,
      headers: standardHeaders(response, auditId),
      onIdle: settle,
      onEnd: (sent) => {
        onEnd?.(sent)
        this.#end(sent)
      },
    }
  }

  [Symbol.dispose](): void {
    if (!this.#isHandedOver) this.#end(NOTHING_SENT)
  }

  #end(sent: Sent): void {
    if (this.#isEnded) return
    this.#isEnded = true
    const entry = this.#entry
    if (this.#lateWork === undefined) entry?.[Symbol.dispose]()
    else void this.#lateWork.then(() => entry?.[Symbol.dispose]())
    this.trace?.ended(sent)
    const ms = performance.now() - this.#startedAt
    this.#observer.ended(this.attributes, sent, { ms, isLong: this.#isLong })
  }
}

const NOTHING_SENT: Sent = { status: 0, bytes: 0 }

export function standardHeaders({ headers }: Response, auditId: string): Response['headers'] {
  return { 'audit-id': auditId, 'cache-control': 'no-cache, private', ...headers }
}

/** The caller's own id if it is valid, so that the logs of both can be joined. */
export function auditIdOf(request: Request): string {
  const sent = request.headers['audit-id']
  if (sent === undefined || sent.length > AUDIT_ID_MAX) return randomUUID()
  const isUsable = /^[\x21-\x7e]+$/.test(sent) && withoutTokens(sent) === sent
  return isUsable ? sent : randomUUID()
}
