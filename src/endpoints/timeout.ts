import { type StatusError, timedOut } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'
import type { Endpoint } from './event-api.ts'
import type { EventPath } from './event-routes.ts'
import { readTimeoutMs } from './query-values.ts'

const RETRY_LATE_READ_SECONDS = 1

/** A read may simply be sent again. What became of a late write its caller has to find out. */
export function lateError({ method }: Request, cause?: unknown): StatusError {
  const isRead = method === 'GET' || method === 'HEAD'
  return timedOut(isRead ? { retryAfterSeconds: RETRY_LATE_READ_SECONDS, cause } : { cause })
}

/**
 * Gives up when the caller's own patience (`?timeout=5s`) is at its end. A write that has begun is
 * not stopped by that, and a late answer says nothing about whether it happened.
 */
export function inTime<Path extends EventPath>(endpoint: Endpoint<Path>): Endpoint<Path> {
  return async (request, path, caller) => {
    const timeoutMs = readTimeoutMs(request.query)
    if (timeoutMs === undefined) return endpoint(request, path, caller)
    // Not even a timer is that short.
    if (timeoutMs < 1) throw lateError(request)
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(lateError(request)), timeoutMs)
    try {
      return await Promise.race([late.promise, endpoint(request, path, caller)])
    } finally {
      clearTimeout(timer)
    }
  }
}
