import { type StatusError, timedOut } from '../../api/status.ts'
import { abandon, ExchangeError, type Request, type Response } from '../../http/exchange.ts'
import { readTimeoutMs } from './query-values.ts'

const RETRY_LATE_READ_SECONDS = 1

/** A read is safe to retry. After a late write, the client must find out whether it happened. */
export function lateError({ method }: Request, cause?: unknown): StatusError {
  const isRead = method === 'GET' || method === 'HEAD'
  return timedOut(isRead ? { retryAfterSeconds: RETRY_LATE_READ_SECONDS, cause } : { cause })
}

/** Thrown when the client's own timeout has passed and the handler still runs. */
export class HandlerStillRuns extends Error {
  /** The error response for the client. */
  readonly status: StatusError
  /** Resolves when the handler has ended. */
  readonly ended: Promise<void>

  constructor(status: StatusError, ended: Promise<void>) {
    super(status.message)
    this.status = status
    this.ended = ended
  }
}

type Handling<Rest extends readonly unknown[]> = (
  request: Request,
  ...rest: Rest
) => Promise<Response>

/**
 * Enforces the client's own timeout (`?timeout=5s`). It cancels reads, even those of a write. A
 * write that has been sent is not cancelled, and the response does not say whether it happened.
 * Without such a timeout it costs nothing, which is why an invalid one throws instead of rejecting.
 */
export function inTime<Rest extends readonly unknown[]>(handle: Handling<Rest>): Handling<Rest> {
  return (request, ...rest) => {
    const timeoutMs = readTimeoutMs(request.query)
    if (timeoutMs === undefined) return handle(request, ...rest)
    return within(timeoutMs, request, (limited) => handle(limited, ...rest))
  }
}

async function within(
  timeoutMs: number,
  request: Request,
  handle: (request: Request) => Promise<Response>,
): Promise<Response> {
  // Timers have a resolution of 1 ms.
  if (timeoutMs < 1) throw lateError(request)
  const end = new AbortController()
  const response = handle(endingWith(request, end.signal))
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const ended = response.then(({ body }) => abandon(body)).catch(() => {})
    late.reject(new HandlerStillRuns(lateError(request), ended))
    end.abort(new ExchangeError('timeout', 'the request exceeded the timeout of its client'))
  }, timeoutMs)
  try {
    return await Promise.race([late.promise, response])
  } finally {
    clearTimeout(timer)
  }
}

function endingWith(request: Request, signal: AbortSignal): Request {
  const { method, path, query, headers, rawHeaders, peer, memory, lane, span } = request
  return {
    method,
    path,
    query,
    headers,
    ...(rawHeaders === undefined ? {} : { rawHeaders }),
    ...(memory === undefined ? {} : { memory }),
    peer,
    lane,
    span,
    signal: AbortSignal.any([request.signal, signal]),
    body: (bytesMax) => request.body(bytesMax),
  }
}
