import { StatusError, timedOut } from '../api/status.ts'
import { abandon, ExchangeError, type Request } from '../http/exchange.ts'
import type { Endpoint } from './event-api.ts'
import type { EventPath } from './event-routes.ts'
import { readTimeoutMs } from './query-values.ts'

const RETRY_LATE_READ_SECONDS = 1

/** A read may simply be sent again. What became of a late write its caller has to find out. */
export function lateError({ method }: Request, cause?: unknown): StatusError {
  const isRead = method === 'GET' || method === 'HEAD'
  return timedOut(isRead ? { retryAfterSeconds: RETRY_LATE_READ_SECONDS, cause } : { cause })
}

/** What goes on behind an answer that says it took too long. */
const underWay = new WeakMap<object, Promise<void>>()

/** Resolves when what an error gave up on is over; undefined when nothing is left of it. */
export function workBehind(error: unknown): Promise<void> | undefined {
  return error instanceof StatusError ? underWay.get(error) : undefined
}

/**
 * Gives up when the caller's own patience (`?timeout=5s`) is at its end. Reads are stopped by that,
 * also those of a write; what a write has begun is not, and a late answer says nothing about
 * whether it happened.
 */
export function inTime<Path extends EventPath>(endpoint: Endpoint<Path>): Endpoint<Path> {
  return async (request, path, caller) => {
    const timeoutMs = readTimeoutMs(request.query)
    if (timeoutMs === undefined) return endpoint(request, path, caller)
    // Not even a timer is that short.
    if (timeoutMs < 1) throw lateError(request)
    const end = new AbortController()
    const answer = endpoint(endingWith(request, end.signal), path, caller)
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => {
      const error = lateError(request)
      const over = answer.then(({ body }) => abandon(body))
      underWay.set(
        error,
        over.catch(() => {}),
      )
      late.reject(error)
      end.abort(new ExchangeError('timeout', 'the request took longer than its caller would wait'))
    }, timeoutMs)
    try {
      return await Promise.race([late.promise, answer])
    } finally {
      clearTimeout(timer)
    }
  }
}

function endingWith(request: Request, signal: AbortSignal): Request {
  const { method, path, query, headers, rawHeaders, peer } = request
  return {
    method,
    path,
    query,
    headers,
    ...(rawHeaders === undefined ? {} : { rawHeaders }),
    peer,
    signal: AbortSignal.any([request.signal, signal]),
    body: () => request.body(),
  }
}
