import { queryBoolean } from '../../api/query-boolean.ts'
import { badRequest } from '../../api/status.ts'
import { readText } from './query-values.ts'

export interface GetOptions {
  /** The response must not be older than this version. As sent; empty: not sent. */
  readonly resourceVersion: string
}

/** Throws a 400 for `export`, which Kubernetes has removed. */
export function readGetOptions(query: URLSearchParams): GetOptions {
  if (queryBoolean(query, 'export') === true) {
    throw badRequest('the export parameter, deprecated since v1.14, is no longer supported')
  }
  return { resourceVersion: readText(query, 'resourceVersion') }
}
