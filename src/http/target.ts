import { PATH_BYTES_MAX, QUERY_BYTES_MAX, QUERY_PAIRS_MAX } from './limits.ts'

/** What a request is about, as its first line has it. */
export interface Target {
  /** Decoded, without the query. */
  readonly path: string
  readonly search: string
}

/** Splits and decodes; a proxy-style absolute target (`http://host/path`) counts as its path. */
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
  // Before anybody looks at it: strangers may send one.
  if (path.length > PATH_BYTES_MAX) return 'too-long'
  if (!path.includes('%'))
    return { path: search.length < COPIED_FROM ? path : copyOf(path), search }
  try {
    return { path: decodeURIComponent(path), search }
  } catch {
    // A stray % or bytes that are no UTF-8: there is no path to speak of.
    return undefined
  }
}

/** Parsing a query takes more than its share of time as it grows, and strangers may send one. */
export function isLongQuery(search: string): boolean {
  if (search.length > QUERY_BYTES_MAX) return true
  let pairs = 1
  for (let at = search.indexOf('&'); at !== -1; at = search.indexOf('&', at + 1)) pairs += 1
  return pairs > QUERY_PAIRS_MAX
}

/** Queries from this length on are worth a copy of what was cut from beside them. */
const COPIED_FROM = 256

/** Cut from a longer string, a string keeps all of that alive: paths are kept for as long as watches. */
function copyOf(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1')
}
