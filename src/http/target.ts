import { PATH_BYTES_MAX, QUERY_BYTES_MAX, QUERY_PAIRS_MAX } from './limits.ts'

/** The path and the query of a request. */
export interface Target {
  /** Decoded, without the query. */
  readonly path: string
  readonly search: string
}

/**
 * Splits a request target and decodes its path. Of an absolute target (`http://host/path`), as sent
 * to a proxy, only the path is used. Undefined: not a valid path.
 */
export function splitTarget(target: string): Target | 'too-long' | undefined {
  let rest = target
  if (!rest.startsWith('/')) {
    const absolute = /^https?:\/\/[^/?]*/i.exec(rest)
    if (absolute === null) return undefined
    rest = rest.slice(absolute[0].length)
    if (!rest.startsWith('/')) rest = `/${rest}`
  }
  const mark = rest.indexOf('?')
  const path = mark === -1 ? rest : rest.slice(0, mark)
  const search = mark === -1 ? '' : rest.slice(mark + 1)
  // Checked before anything else reads the path: the client is not authenticated yet.
  if (path.length > PATH_BYTES_MAX) return 'too-long'
  if (!path.includes('%'))
    return { path: search.length < COPY_FROM_LENGTH ? path : copyOf(path), search }
  try {
    return { path: decodeURIComponent(path), search }
  } catch {
    // A stray % or bytes that are not UTF-8.
    return undefined
  }
}

/**
 * Parsing time grows faster than the length of a query, and the client is not authenticated yet: so
 * the length is limited.
 */
export function isLongQuery(search: string): boolean {
  if (search.length > QUERY_BYTES_MAX) return true
  let pairs = 1
  for (let at = search.indexOf('&'); at !== -1; at = search.indexOf('&', at + 1)) pairs += 1
  return pairs > QUERY_PAIRS_MAX
}

/** The path is copied if the query is at least this long. */
const COPY_FROM_LENGTH = 256

/**
 * A substring in V8 keeps its whole parent string alive, and a path is retained for as long as its
 * watch: without a copy it would keep the query, too.
 */
function copyOf(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
