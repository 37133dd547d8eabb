import { badRequest } from '../api/status.ts'
import { readBoolean, readText } from './query-values.ts'

export interface GetOptions {
  /** The answer is to be no older; as it was sent, empty when it was not. */
  readonly resourceVersion: string
}

/** Throws a 400 for a parameter that clients gave up long ago. */
export function readGetOptions(query: URLSearchParams): GetOptions {
  if (readBoolean(query, 'export') === true) {
    throw badRequest('the export parameter, deprecated since v1.14, is no longer supported')
  }
  return { resourceVersion: readText(query, 'resourceVersion') }
}
