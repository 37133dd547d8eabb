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
import type { Attributes } from '../gate/attributes.ts'
import type { Auditor } from '../gate/audit/auditor.ts'
import { refuseOtherOrigins } from '../gate/cross-origin.ts'
import type { Gate, Trail } from '../gate/gate.ts'
import type { Limits } from '../gate/limits/limits.ts'
import type { RefusalLog } from '../gate/refusal.ts'
import { attributesOf, readTarget, type Target } from '../gate/target.ts'
import { ANONYMOUS, accountOf, type User } from '../gate/user.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import { ExchangeError } from '../http/exchange.ts'
import type { Log } from '../lib/log/log.ts'
import { withoutTokens } from '../lib/log/token-scrub.ts'
import type { RunQueue } from '../lib/run-queue.ts'
import type { Tracer } from '../tracing/tracer.ts'
import { AuditRecord } from './observe/audit-record.ts'
import { RequestLine } from './observe/request-line.ts'
import type { RequestObserver } from './observe/request-tallies.ts'
import { RequestTrace } from './observe/request-trace.ts'
import { HandlerStillRuns, lateError } from './request/timeout.ts'
import { RequestSlot } from './request-slot.ts'
import { pageNotFound, statusResponse, textResponse } from './response/respond.ts'
import type { Services } from './services.ts'

/** A longer id is not from an audit trail: it only wastes memory and log space. */
const AUDIT_ID_MAX = 128
/** While start-up finishes or shutdown begins, another replica can serve the request sooner. */
const RETRY_AFTER_SECONDS = 5
/** The time until connections of clients that do not read are closed. */
const RETRY_MEMORY_SECONDS = 10

export interface ServeOptions {
  readonly services: Services
  readonly gate: Gate
  readonly limits: Limits
  readonly observer: RequestObserver
  /** Undefined: long work of requests does not take turns. */
  readonly runQueue?: RunQueue | undefined
  /** Undefined: requests are not audited. */
  readonly audit?: Auditor | undefined
  /** Undefined: requests are not traced. */
  readonly tracer?: Tracer | undefined
  readonly refusals?: Pick<RefusalLog, 'refused'> | undefined
  readonly log: Log
  /** The cluster of paths that do not name one. */
  readonly clusterName: string
  /** The server shuts down: new requests get 429, so that clients go to another replica. */
  isTurningAway(): boolean
}

/**
 * The life of a request, on one page: find the service of its path, refuse pages of other origins,
 * authenticate the user, acquire a slot, authorise, call the service. An error from any step becomes
 * a response here and nowhere else. An unknown path gets its 404 after the gate, so that
 * unauthenticated clients learn nothing from it.
 */
export function serve(options: ServeOptions): Handler {
  const { log, observer } = options
  return async (request) => {
    const auditId = auditIdOf(request)
    const startedAt = performance.now()
    const target = readTarget(request, options.clusterName)
    // The only part of the target that is kept until the response has been sent.
    const attributes = attributesOf(target)
    const record = auditRecordOf(request, attributes, { auditId, audit: options.audit })
    const line = RequestLine.start(log, record?.trail)
    const trail = line ?? record?.trail
    const slot = new RequestSlot(options.limits)
    const trace = RequestTrace.begin(options.tracer, request)
    let response: Response
    try {
      const found = options.services.find(target)
      if (found?.service.hasSecretBodies === true) record?.omitBodies()
      if (options.isTurningAway() && found?.service.isServedAtShutdown !== true) {
        response = shuttingDown()
        observer.failed?.(attributes, 'TooManyRequests')
      } else {
        response = await respond(request, target, options, {
          attributes,
          found,
          record,
          trail,
          slot,
          trace,
        })
        if (record !== undefined) response = await record.complete(response)
      }
    } catch (error) {
      slot.onError(error)
      trace?.failed(error)
      const status = statusErrorFor(request, error)
      options.refusals?.refused(status, request)
      observer.failed?.(attributes, status.reason)
      response = errorResponse(request, error, status, () => log.child({ auditId }))
      if (record !== undefined) {
        const isPanic = status !== error && status.reason === 'InternalError'
        response = await record.complete(response, { error: status, isPanic })
      }
    }
    line?.write(request, {
      auditId,
      verb: attributes.verb,
      status: response.status,
      ms: performance.now() - startedAt,
    })
    const { onEnd } = response
    response = slot.beforeSend(response, request.peer)
    trace?.responding(response, {
      request,
      auditId,
      attributes,
      labels: observer.labelsOf?.(attributes),
    })
    const isLong = response.longRunning === true
    if (isLong) observer.begun(attributes)
    return {
      ...response,
      headers: standardHeaders(response, auditId),
      onEnd: (sent) => {
        onEnd?.(sent)
        slot.release()
        trace?.ended(sent)
        observer.ended(attributes, sent, { ms: performance.now() - startedAt, isLong })
      },
    }
  }
}

async function respond(
  request: Request,
  target: Target,
  { services, gate, runQueue }: ServeOptions,
  { attributes, found, record, trail, slot, trace }: RequestState,
): Promise<Response> {
  refuseOtherOrigins(request)
  const access = found?.service ?? { isOpenToHost: true }
  const caller = await gate.admit(request, attributes, access, {
    trail,
    arrived: (sender, { isOpen, recheckBytes }) => {
      trace?.authenticated(sender)
      request.lane = runQueue?.userLane(accountOf(sender))
      if (sender !== ANONYMOUS) {
        slot.setUser(sender)
        chargeUser(request, sender)
      }
      const auditBytes = record?.trail.heldBytes ?? 0
      if (auditBytes > 0 && request.memory?.hold('audit', auditBytes) !== undefined)
        throw TOO_MUCH_MEMORY
      if (target.verb === 'watch') chargeWatch(request, recheckBytes)
      request.narrow?.()
      const isAboutServer = found?.service.isAboutServer === true
      const acquired = slot.acquire({ user: sender, target, request, isOpen, isAboutServer })
      return trace === undefined ? acquired : trace.acquiring(acquired)
    },
  })
  if (trace !== undefined) request.span = trace.admitted()
  if (found === undefined) return noService(services)
  // Awaited here: an async function that returns a promise takes two more turns of the queue.
  return await found.handler(record?.request() ?? request, caller)
}

/** From here on, what the request and its connection hold is charged to the user. */
function chargeUser({ memory }: Request, user: User): void {
  const limit = memory?.own(accountOf(user))
  if (limit !== undefined)
    throw limit === 'user-connections' ? TOO_MANY_CONNECTIONS : TOO_MUCH_MEMORY
}

/**
 * Charges the memory that a watch holds until it ends: its credentials and their user, to recheck
 * its access, and its selectors. Equal selectors are shared, so the charge is an upper bound.
 */
function chargeWatch({ memory, headers, query }: Request, recheckBytes: number): void {
  const { authorization = '' } = headers
  const selectors = ['labelSelector', 'fieldSelector'].map((name) => query.get(name)?.length ?? 0)
  const limit =
    memory?.hold('credentials', authorization.length + recheckBytes) ??
    memory?.hold('selector', SELECTOR_COPIES * selectors.reduce((sum, bytes) => sum + bytes, 0))
  if (limit !== undefined) throw TOO_MUCH_MEMORY
}

/** The text as sent, and the compiled selector. */
const SELECTOR_COPIES = 2

/** What the steps before `respond` have found. */
interface RequestState {
  readonly attributes: Attributes
  readonly found: ReturnType<Services['find']>
  readonly record: AuditRecord | undefined
  readonly trail: Trail | undefined
  readonly slot: RequestSlot
  readonly trace: RequestTrace | undefined
}

const TOO_MUCH_MEMORY = tooManyRequests(
  'this replica holds too many bytes for this user: read open responses or close watches, then retry',
  RETRY_MEMORY_SECONDS,
)

const TOO_MANY_CONNECTIONS = tooManyRequests(
  'this user has too many connections to this replica, so this one is closed: send requests over the open connections',
  RETRY_MEMORY_SECONDS,
)

/** The response to a request whose handler took too long; the handler's own is discarded. */
export function lateResponse(request: Request, audit?: Auditor): Response {
  const response = statusResponse(request, lateError(request))
  const auditId = audit?.idOf(request) ?? auditIdOf(request)
  return { ...response, headers: standardHeaders(response, auditId) }
}

function auditRecordOf(
  request: Request,
  attributes: Attributes,
  { auditId, audit }: { readonly auditId: string; readonly audit: Auditor | undefined },
): AuditRecord | undefined {
  if (audit === undefined) return undefined
  return new AuditRecord(audit.begin(request, attributes, auditId), request)
}

/** The only place where an error becomes a response: anything thrown becomes a Status. */
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
  if (error instanceof HandlerStillRuns) return error.status
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

/** A 404, or a 503 while a service that may have the path is missing. */
function noService(services: Services): Response {
  if (services.missing().length > 0) {
    throw unavailable(
      'the request has been made before all known HTTP paths have been installed, please try again',
      RETRY_AFTER_SECONDS,
    )
  }
  return pageNotFound()
}

function shuttingDown(): Response {
  const response = textResponse(429, 'The apiserver is shutting down, please try again later.\n')
  return {
    ...response,
    headers: { ...response.headers, 'retry-after': String(RETRY_AFTER_SECONDS) },
    closeConnection: true,
  }
}

function standardHeaders({ headers }: Response, auditId: string): Response['headers'] {
  return { 'audit-id': auditId, 'cache-control': 'no-cache, private', ...headers }
}

/** The caller's own id if it is valid, so that the logs of both can be joined by it. */
function auditIdOf(request: Request): string {
  const sent = request.headers['audit-id']
  if (sent === undefined || sent.length > AUDIT_ID_MAX) return randomUUID()
  const isUsable = /^[\x21-\x7e]+$/.test(sent) && withoutTokens(sent) === sent
  return isUsable ? sent : randomUUID()
}
