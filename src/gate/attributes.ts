/**
 * What a request asks for, in the terms in which permissions are given. Read off the request line
 * alone, so it can be known before anybody has been let in.
 */
import { parseFieldSelector } from '../api/field-selector.ts'
import type { Request } from '../http/exchange.ts'

export type Attributes = ResourceAttributes | PathAttributes

/** Something is done to objects. */
export interface ResourceAttributes {
  readonly isResource: true
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; '' for none. */
  readonly verb: string
  /** '' is the group without a name. */
  readonly group: string
  readonly version: string
  readonly resource: string
  readonly subresource: string
  /** '' when all namespaces are meant, or the resource has none. */
  readonly namespace: string
  /** '' when no single object is meant. */
  readonly name: string
  readonly path: string
}

/** A path that stands for no object. */
export interface PathAttributes {
  readonly isResource: false
  /** The method in lower case. */
  readonly verb: string
  readonly path: string
}

/** Methods on one object, and on many. */
const OBJECT_VERBS: Readonly<Record<string, string>> = {
  GET: 'get',
  HEAD: 'get',
  POST: 'create',
  PUT: 'update',
  PATCH: 'patch',
  DELETE: 'delete',
}

export function attributesOf(request: Pick<Request, 'method' | 'path' | 'query'>): Attributes {
  const { method, path } = request
  const parts = path.split('/').filter((part) => part !== '')
  const isCore = parts[0] === 'api'
  const rest = isCore ? parts.slice(2) : parts.slice(3)
  if ((!isCore && parts[0] !== 'apis') || rest.length === 0) {
    return { isResource: false, verb: method.toLowerCase(), path }
  }
  const isWatchPath = rest[0] === 'watch'
  if (isWatchPath) rest.shift()
  const isNamespaced = rest[0] === 'namespaces' && rest.length > 2
  const namespace = isNamespaced ? (rest[1] ?? '') : ''
  const [resource = '', inPath = '', subresource = ''] = isNamespaced ? rest.slice(2) : rest
  const name = inPath === '' ? selectedName(request, isWatchPath) : inPath
  return {
    isResource: true,
    verb: isWatchPath ? 'watch' : verbOf(request, inPath !== ''),
    group: isCore ? '' : (parts[1] ?? ''),
    version: (isCore ? parts[1] : parts[2]) ?? '',
    resource,
    subresource,
    namespace,
    name,
    path,
  }
}

function verbOf({ method, query }: Pick<Request, 'method' | 'query'>, isNamed: boolean): string {
  const verb = Object.hasOwn(OBJECT_VERBS, method) ? (OBJECT_VERBS[method] ?? '') : ''
  if (isNamed) return verb
  if (verb === 'delete') return 'deletecollection'
  if (verb !== 'get') return verb
  return isTrue(query.get('watch')) ? 'watch' : 'list'
}

/**
 * A list or watch of one object by its name is a matter of that object. Read by the parser that the
 * list itself is read by: two readings of one selector would be a way around permissions.
 */
function selectedName(
  { method, query }: Pick<Request, 'method' | 'query'>,
  isWatchPath: boolean,
): string {
  if (method !== 'GET' && !isWatchPath) return ''
  const selector = query.get('fieldSelector')
  if (selector === null || selector === '') return ''
  try {
    const fields = parseFieldSelector(selector)
    const named = fields.find(
      ({ field, operator }) => field === 'metadata.name' && operator === '=',
    )
    return named?.value ?? ''
  } catch {
    // Refused later, by whoever is asked for such a list.
    return ''
  }
}

function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}
