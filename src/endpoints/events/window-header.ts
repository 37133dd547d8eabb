import type { Response } from '../../http/exchange.ts'
import { within } from '../../lib/abort.ts'
import type { Lane } from '../../lib/run-queue.ts'
import type { ListTarget } from '../request/list-options.ts'
import { scopeOf } from '../request/list-plan.ts'
import type { ReadApi } from './event-api.ts'

/** How long a list waits for its header. */
const WAIT_MS_MAX = 20

/**
 * Reports how far back the events of the path go: when the oldest one was last seen. A client that
 * finds nothing before that time knows that there may have been something. There is no header when
 * there are no events, while they are being loaded, or when the search takes too long, in which
 * case the next list has it; nor for one namespace of all clusters, which is not a scope.
 */
export async function windowHeader(
  { oldestIn }: Pick<ReadApi, 'oldestIn'>,
  target: ListTarget,
  lane: Lane,
): Promise<Response['headers']> {
  const scope = scopeOf(target)
  if (oldestIn === undefined) return {}
  if (scope.cluster === undefined && 'namespace' in target.place) return {}
  const found = oldestIn(scope, lane)
  // Usually known at once. Only a search needs a timer.
  const oldestMs = found instanceof Promise ? await soon(found) : found
  return oldestMs === undefined ? {} : { 'tidings-window': new Date(oldestMs).toISOString() }
}

/** Resolves with undefined when it takes longer than a list may wait. */
async function soon(search: Promise<number | undefined>): Promise<number | undefined> {
  let oldestMs: number | undefined
  await within(
    WAIT_MS_MAX,
    search.then((ms) => {
      oldestMs = ms
    }),
  )
  return oldestMs
}
