import { readTarget, type Target } from './target.ts'

/** Returns the target of a GET of this path. */
export function targetOf(path: string): Target {
  return readTarget({ method: 'GET', path, query: new URLSearchParams() }, 'local')
}
