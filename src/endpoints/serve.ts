import {
  badRequest,
  bodyTooSlow,
  entityTooLarge,
  internalError,
  StatusError,
  tooManyRequests,
  unavailable,
} from '../api/status.ts'
import type { Auditor } from '../gate/audit/auditor.ts'
import { refuseOtherOrigins } from '../gate/cross-origin.ts'
import type { Caller, Gate } from '../gate/gate.ts'
import type { Limits } from '../gate/limits/limits.ts'
import type { RefusalLog } from '../gate/refusal.ts'
import { attributesOf, readTarget, type Target } from '../gate/target.ts'
import { ANONYMOUS, accountOf, type User } from '../gate/user.ts'
import type { Handler, Request, Response } from '../http/exchange.ts'
import { ExchangeError } from '../http/exchange.ts'
import type { Log } from '../lib/log/log.ts'
import type { RunQueue } from '../lib/run-queue.ts'
import { HandlerStillRuns, lateError } from './request/timeout.ts'
import { auditIdOf, RequestScope, type ScopeOptions, standardHeaders } from './request-scope.ts'
import { pageNotFound, statusResponse, textResponse } from './response/respond.ts'
import type { Service, Services } from './services.ts'

/** During start-up and shutdown, another replica can serve the request sooner. */
const RETRY_AFTER_SECONDS = 5
/** The time after which connections of clients that do not read are closed. */
const RETRY_MEMORY_SECONDS = 10

export interface ServeOptions extends ScopeOptions {
  readonly services: Services
  readonly gate: Gate
  readonly limits: Limits
  readonly runQueue: RunQueue
  readonly refusals?: Pick<RefusalLog, 'refused'> | undefined
  /** The cluster of paths that do not name one. */
  readonly clusterName: string
  /** True during shutdown: new requests get 429, so that clients go to another replica. */
  isTurningAway(): boolean
}

/**
 * The life of a request, on one page. The scope owns the resources of the request, whichever step
 * fails. An error of any step becomes a response here and nowhere else.
 */
export function serve(options: ServeOptions): Handler {
  return async (request) => {
    const target = readTarget(request, options.clusterName)
    // The only part of the target that is retained until the response has been sent.
    using scope = new RequestScope(request, attributesOf(target), options)
    let response: Response
    try {
      const found = options.services.find(target)
      if (options.isTurningAway() && found?.service.isServedAtShutdown !== true) {
        scope.failed('TooManyRequests')
        return scope.respond(shuttingDown())
      }
      response = await scope.complete(await handle(request, target, { options, scope, found }))
    } catch (error) {
      const status = statusErrorFor(request, error)
      scope.trace?.failed(error)
      options.refusals?.refused(status, request)
      const isPanic = status !== error && status.reason === 'InternalError'
      const refusal = errorResponse(request, error, status, () =>
        options.log.child({ auditId: scope.auditId }),
      )
      response = await scope.complete(refusal, { error: status, isPanic }, error)
    }
    return scope.respond(response)
  }
}

/**
 * Authenticates, authorises, reads the body, waits for a slot and calls the handler. An unknown
 * path gets its 404 at the end, so that unauthenticated clients learn nothing from it. Slots are
 * taken last, so a client that has no permission or withholds its body takes none.
 */
async function handle(
  request: Request,
  target: Target,
  { options, scope, found }: Handling,
): Promise<Response> {
  const { services, gate, limits, runQueue } = options
  const { attributes, record, trace, trail } = scope
  const service = found?.service
  if (service?.hasSecretBodies === true) record?.omitBodies()
  refuseOtherOrigins(request)

  const access = service ?? UNKNOWN_PATH
  const authenticating = gate.authenticate(request, attributes, access, trail)
  const sender = authenticating instanceof Promise ? await authenticating : authenticating
  trace?.authenticated(sender)
  request.lane = runQueue.userLane(accountOf(sender))
  const isAboutServer = service?.isAboutServer === true
  charge(request, sender, record?.trail.retainedBytes ?? 0, isAboutServer)

  trace?.step('authorization')
  const authorizing = gate.authorize(request, attributes, access, { sender, trail })
  const caller = authorizing instanceof Promise ? await authorizing : authorizing
  if (target.verb === 'watch') chargeWatch(request, caller)
  request.narrow?.()

  const receiving = service && receive(request, service)
  if (receiving !== undefined) {
    trace?.step('receive')
    await receiving
  }

  const isOpen = isAboutServer && gate.isOpen(attributes, access)
  const admitting = limits.enter({ user: sender, target, request, isOpen, isAboutServer })
  if (admitting instanceof Promise) trace?.step('wait for a slot')
  scope.hold(admitting instanceof Promise ? await admitting : admitting)

  if (trace !== undefined) request.span = trace.admitted()
  if (found === undefined) return noService(services)
  // Awaited here, since an async function that returns a promise takes two more microtasks.
  return await found.handler(record?.request() ?? request, caller)
}

interface Handling {
  readonly options: ServeOptions
  readonly scope: RequestScope
  /** Undefined for a path that no service serves. */
  readonly found: ReturnType<Services['find']>
}

const UNKNOWN_PATH = { isOpenToHost: true }

/** A body that handlers read is complete before the request takes a slot. */
function receive(request: Request, { bodyBytesMax }: Service): Promise<void> | undefined {
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  return isRead ? undefined : request.received?.(bodyBytesMax)?.then(throwFailure)
}

/** Leaves it to the handler to refuse a body that is too large. */
function throwFailure(failure: unknown): void {
  if (failure instanceof ExchangeError && failure.kind !== 'too-large') throw failure
}

/**
 * Charges the memory of the request and its connection to the user from here on. Requests about the
 * server are never refused for it, since a replica whose probes fail is restarted.
 */
function charge(
  { memory }: Request,
  sender: User,
  auditBytes: number,
  isAboutServer: boolean,
): void {
  const limit =
    (sender === ANONYMOUS ? undefined : memory?.own(accountOf(sender))) ??
    (auditBytes === 0 ? undefined : memory?.hold('audit', auditBytes))
  if (limit === undefined || isAboutServer) return
  throw limit === 'user-connections' ? TOO_MANY_CONNECTIONS : TOO_MUCH_MEMORY
}

/**
 * Charges the memory that a watch retains until it ends: its credentials and their user, to recheck
 * its access, and its selectors. Equal selectors are shared, so the charge is an upper bound.
 */
function chargeWatch({ memory, headers, query }: Request, { recheckBytes = 0 }: Caller): void {
  const { authorization = '' } = headers
  const selectors = ['labelSelector', 'fieldSelector', 'shardSelector'].map((name) =>
    Buffer.byteLength(query.get(name) ?? ''),
  )
  const limit =
    memory?.hold('credentials', authorization.length + recheckBytes) ??
    memory?.hold('selector', SELECTOR_COPIES * selectors.reduce((sum, bytes) => sum + bytes, 0))
  if (limit !== undefined) throw TOO_MUCH_MEMORY
}

/** The original text, and the compiled selector. */
const SELECTOR_COPIES = 2

const TOO_MUCH_MEMORY = tooManyRequests(
  'this replica holds too many bytes for this user: read open responses or close watches, then retry',
  RETRY_MEMORY_SECONDS,
)

const TOO_MANY_CONNECTIONS = tooManyRequests(
  'this user has too many connections to this replica, so this one is closed: send requests over the open connections',
  RETRY_MEMORY_SECONDS,
)

/** The response to a request whose handler took too long. The handler's own is discarded. */
export function lateResponse(request: Request, audit?: Auditor): Response {
  const response = statusResponse(request, lateError(request))
  const auditId = audit?.idOf(request) ?? auditIdOf(request)
  return { ...response, headers: standardHeaders(response, auditId) }
}

/** The only place where an error becomes a response. Anything thrown becomes a Status. */
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
    case 'too-slow':
      return bodyTooSlow(error.message, error)
    case 'malformed':
      return badRequest(error.message, error)
    case 'shutdown':
      return unavailable('apiserver is shutting down', 1)
    case 'gone':
    case 'timeout':
      return lateError(request, error)
  }
}

/** A 404, or a 503 while a service that may serve the path is missing. */
function noService(services: Services): Response {
  if (services.missing().length > 0) {
    throw unavailable(
      'the request has been made before all known HTTP paths have been installed, please try again',
      RETRY_AFTER_SECONDS,
    )
  }
  return pageNotFound()
}

/** Plain text, as in Kubernetes. */
function shuttingDown(): Response {
  const response = textResponse(429, 'The apiserver is shutting down, please try again later.\n')
  return {
    ...response,
    headers: { ...response.headers, 'retry-after': String(RETRY_AFTER_SECONDS) },
    closeConnection: true,
  }
}
