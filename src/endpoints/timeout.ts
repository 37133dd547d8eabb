import { timedOut } from '../api/status.ts'
import type { Endpoint } from './event-api.ts'
import type { EventPath } from './event-routes.ts'
import { readTimeoutMs } from './query-values.ts'

/**
 * Gives up when the caller's own patience (`?timeout=5s`) is at its end. A write that has begun is
 * not stopped by that, and a late answer says nothing about whether it happened.
 */
export function inTime<Path extends EventPath>(endpoint: Endpoint<Path>): Endpoint<Path> {
  return async (request, path, caller) => {
    const timeoutMs = readTimeoutMs(request.query)
    if (timeoutMs === undefined) return endpoint(request, path, caller)
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(timedOut({})), timeoutMs)
    try {
      return await Promise.race([late.promise, endpoint(request, path, caller)])
    } finally {
      clearTimeout(timer)
    }
  }
}
