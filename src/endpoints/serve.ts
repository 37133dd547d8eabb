import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import {
  badRequest,
  entityTooLarge,
  internalError,
  StatusError,
  tooManyRequests,
  unavailable,
} from '../api/status.ts'
import { type Attributes, attributesOf } from '../gate/attributes.ts'
import type { Auditor } from '../gate/audit/auditor.ts'
import type { Gate, Trail } from '../gate/gate.ts'
import type { Limits } from '../gate/limits/limits.ts'
import type { RefusalLog } from '../gate/refusal.ts'
import { ANONYMOUS } from '../gate/user.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import { ExchangeError } from '../http/exchange.ts'
import type { Log } from '../lib/log.ts'
import { withoutTokens } from '../lib/token-scrub.ts'
import { AuditRecord } from './audit-record.ts'
import { RequestLine } from './request-line.ts'
import type { RequestObserver } from './request-tallies.ts'
import { pageNotFound, statusResponse, textResponse } from './respond.ts'
import type { Services } from './services.ts'
import { Stay } from './stay.ts'
import { lateError } from './timeout.ts'

/** Longer ids than this are somebody's mischief, not an audit trail. */
const AUDIT_ID_MAX = 128
/** While start-up finishes or shutdown begins, another replica is better placed. */
const RETRY_AFTER_SECONDS = 5
/** As long as it takes to cut those who do not read. */
const RETRY_MEMORY_SECONDS = 10

export interface ServeOptions {
  readonly services: Services
  readonly gate: Gate
  readonly limits: Limits
  readonly observer: RequestObserver
  /** Without it, nothing is kept of any request. */
  readonly audit?: Auditor | undefined
  readonly refusals?: Pick<RefusalLog, 'refused'> | undefined
  readonly log: Log
  /** The server is on its way out and sends new requests elsewhere. */
  isTurningAway(): boolean
}

/**
 * The life of a request, on one page: find whose path it is, learn who asks, find it a place, let
 * the service answer. Whatever a step throws becomes the answer here and nowhere else. An unknown
 * path gets its 404 past the gate, so that strangers learn nothing from it.
 */
export function serve(options: ServeOptions): Handler {
  const { log, observer } = options
  return async (request) => {
    const auditId = auditIdOf(request)
    const startedAt = performance.now()
    const attributes = attributesOf(request)
    const record = recordOf(request, attributes, { auditId, audit: options.audit })
    const line = RequestLine.begun(log, record?.trail)
    const trail = line ?? record?.trail
    const stay = new Stay(options.limits)
    let response: Response
    try {
      if (options.isTurningAway() && !isProbe(request.path)) response = turnedAway()
      else {
        response = await answer(request, attributes, options, { record, trail, stay })
        if (record !== undefined) response = await record.answered(response)
      }
    } catch (error) {
      stay.failed(error)
      const status = statusErrorFor(request, error)
      options.refusals?.refused(status, request)
      response = errorResponse(request, error, status, () => log.child({ auditId }))
      if (record !== undefined) {
        const isPanic = status !== error && status.reason === 'InternalError'
        response = await record.answered(response, { error: status, isPanic })
      }
    }
    line?.print(request, {
      auditId,
      verb: attributes.verb,
      status: response.status,
      ms: performance.now() - startedAt,
    })
    const { onEnd } = response
    response = stay.answers(response, request.peer)
    const isLong = response.longRunning === true
    if (isLong) observer.begun(attributes)
    return {
      ...response,
      headers: standardHeaders(response, auditId),
      onEnd: (sent) => {
        onEnd?.(sent)
        stay.end()
        observer.ended(attributes, sent, { ms: performance.now() - startedAt, isLong })
      },
    }
  }
}

async function answer(
  request: Request,
  attributes: Attributes,
  { services, gate }: ServeOptions,
  { record, trail, stay }: Visit,
): Promise<Response> {
  const found = services.find(request.path)
  const access = found?.service ?? { isOpenToHost: true }
  const caller = await gate.admit(request, attributes, access, {
    trail,
    arrived: (sender, { isOpen, recheckBytes }) => {
      if (sender !== ANONYMOUS) {
        stay.identified(sender)
        const limit = request.memory?.own(sender.name)
        if (limit !== undefined)
          throw limit === 'user-connections' ? TOO_MANY_CONNECTIONS : HOLDS_ALL
      }
      const auditBytes = record?.trail.heldBytes ?? 0
      if (auditBytes > 0 && request.memory?.hold('audit', auditBytes) !== undefined) throw HOLDS_ALL
      if (attributes.verb === 'watch') chargeWatch(request, recheckBytes)
      request.narrow?.()
      return stay.begin({ user: sender, attributes, request, isOpen })
    },
  })
  if (found === undefined) return nowhere(services)
  return found.handler(record?.request() ?? request, caller)
}

/**
 * What is kept for as long as a watch: credentials and who was let in with them, to find out whether
 * that still holds, and selectors.
 * Equal selectors are shared, so this is the most that they take.
 */
function chargeWatch({ memory, headers, query }: Request, recheckBytes: number): void {
  const { authorization = '' } = headers
  const selectors = ['labelSelector', 'fieldSelector'].map((name) => query.get(name)?.length ?? 0)
  const limit =
    memory?.hold('credentials', authorization.length + recheckBytes) ??
    memory?.hold('selector', SELECTOR_COPIES * selectors.reduce((sum, bytes) => sum + bytes, 0))
  if (limit !== undefined) throw HOLDS_ALL
}

/** As it came, and compiled. */
const SELECTOR_COPIES = 2

interface Visit {
  readonly record: AuditRecord | undefined
  readonly trail: Trail | undefined
  readonly stay: Stay
}

const HOLDS_ALL = tooManyRequests(
  'this replica holds too many bytes for this user: read open responses or close watches, then retry',
  RETRY_MEMORY_SECONDS,
)

const TOO_MANY_CONNECTIONS = tooManyRequests(
  'this user has all the connections to this replica that it may have, so this one is closed: send requests over those that are open',
  RETRY_MEMORY_SECONDS,
)

/** The answer to a request whose handler took too long; the handler's own comes too late. */
export function lateResponse(request: Request, audit?: Auditor): Response {
  const response = statusResponse(request, lateError(request))
  const auditId = audit?.idOf(request) ?? auditIdOf(request)
  return { ...response, headers: standardHeaders(response, auditId) }
}

function recordOf(
  request: Request,
  attributes: Attributes,
  { auditId, audit }: { readonly auditId: string; readonly audit: Auditor | undefined },
): AuditRecord | undefined {
  if (audit === undefined) return undefined
  return new AuditRecord(audit.begin(request, attributes, auditId), request)
}

/** The one catch: anything thrown becomes a Status. */
function errorResponse(
  request: Request,
  error: unknown,
  status: StatusError,
  log: () => Log,
): Response {
  if (status.reason === 'InternalError') {
    log().error('Request failed', {
      err: error,
      stack: error instanceof Error ? error.stack : undefined,
      method: request.method,
      path: request.path,
    })
  }
  const response = statusResponse(request, status)
  return status === TOO_MANY_CONNECTIONS ? { ...response, closeConnection: true } : response
}

function statusErrorFor(request: Request, error: unknown): StatusError {
  if (error instanceof StatusError) return error
  if (!(error instanceof ExchangeError)) return internalError(error)
  switch (error.kind) {
    case 'too-large':
      return entityTooLarge(error.message, error)
    case 'too-much':
      return tooManyRequests(error.message, RETRY_MEMORY_SECONDS, error)
    case 'malformed':
      return badRequest(error.message, error)
    case 'shutdown':
      return unavailable('apiserver is shutting down', 1)
    case 'gone':
    case 'timeout':
      return lateError(request, error)
  }
}

function nowhere(services: Services): Response {
  if (services.missing().length > 0) {
    throw unavailable(
      'the request has been made before all known HTTP paths have been installed, please try again',
      RETRY_AFTER_SECONDS,
    )
  }
  return pageNotFound()
}

function turnedAway(): Response {
  const response = textResponse(429, 'The apiserver is shutting down, please try again later.\n')
  return {
    ...response,
    headers: { ...response.headers, 'retry-after': String(RETRY_AFTER_SECONDS) },
    closeConnection: true,
  }
}

/** Probes and metrics tell about the shutdown itself and go on to the end. */
function isProbe(path: string): boolean {
  return /^\/(readyz|livez|healthz|metrics)/.test(path)
}

function standardHeaders({ headers }: Response, auditId: string): Response['headers'] {
  return { 'audit-id': auditId, 'cache-control': 'no-cache, private', ...headers }
}

/** The caller's own id if it is a sensible one, so that both logs can be held side by side. */
function auditIdOf(request: Request): string {
  const sent = request.headers['audit-id']
  if (sent === undefined || sent.length > AUDIT_ID_MAX) return randomUUID()
  const isUsable = /^[\x21-\x7e]+$/.test(sent) && withoutTokens(sent) === sent
  return isUsable ? sent : randomUUID()
}
