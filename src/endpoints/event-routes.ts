/** What a path under `/apis/<group>/v1` names; undefined when it names nothing. */
export type EventPath =
  | { readonly kind: 'everything'; readonly isWatchPath: boolean }
  | { readonly kind: 'collection'; readonly namespace: string; readonly isWatchPath: boolean }
  | {
      readonly kind: 'event'
      readonly namespace: string
      readonly name: string
      readonly isWatchPath: boolean
    }

/** Names end at 253 characters. Whatever is far beyond is nobody's, and too long to be told about. */
const PART_LENGTH_MAX = 1024

/** `rest` is what follows the prefix and its slash. One slash at the end is overlooked. */
export function parseEventPath(rest: string): EventPath | undefined {
  const parts = (rest.endsWith('/') ? rest.slice(0, -1) : rest).split('/')
  const isWatchPath = parts[0] === 'watch'
  if (isWatchPath) parts.shift()
  const [first, namespace, resource, name] = parts
  if (parts.length === 1) {
    return first === 'events' ? { kind: 'everything', isWatchPath } : undefined
  }
  if (first !== 'namespaces' || resource !== 'events' || namespace === undefined) return undefined
  if (namespace === '' || namespace.length > PART_LENGTH_MAX) return undefined
  if (parts.length === 3) return { kind: 'collection', namespace, isWatchPath }
  if (parts.length !== 4 || name === undefined || name === '') return undefined
  if (name.length > PART_LENGTH_MAX) return undefined
  return { kind: 'event', namespace, name, isWatchPath }
}
