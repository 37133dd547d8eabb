import type { Response } from '../../http/exchange.ts'
import type { ListTarget } from '../request/list-options.ts'
import { scopeOf } from '../request/list-plan.ts'
import type { ReadApi } from './event-api.ts'

/**
 * Tells how far back the events of the path go: when the oldest one was last seen. A client that
 * finds nothing before that time knows that there may have been something. No header when there are
 * no events; nor for one namespace of all clusters, which is not a scope.
 */
export async function windowHeader(
  { oldestIn }: Pick<ReadApi, 'oldestIn'>,
  target: ListTarget,
): Promise<Response['headers']> {
  const scope = scopeOf(target)
  if (oldestIn === undefined) return {}
  if (scope.cluster === undefined && 'namespace' in target.place) return {}
  const oldestMs = await oldestIn(scope)
  return oldestMs === undefined ? {} : { 'tidings-window': new Date(oldestMs).toISOString() }
}
