/**
 * What a request asks for, in the terms in which permissions are given. Read off the request line
 * alone, so it can be known before anybody has been let in.
 */
import { coreFieldNames, eventFieldNames, parseFieldSelector } from '../api/field-selector.ts'
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
  const parts = partsOf(path)
  const isCore = parts[0] === 'api'
  const group = isCore ? '' : partAt(parts, 1)
  const versionAt = isCore ? 1 : 2
  const version = partAt(parts, versionAt)
  let at = versionAt + 1
  if ((!isCore && parts[0] !== 'apis') || parts.length <= at) {
    return { isResource: false, verb: method.toLowerCase(), path }
  }
  const isWatchPath = parts[at] === 'watch'
  if (isWatchPath) at += 1
  const isNamespaced = parts[at] === 'namespaces'
  const namespace = isNamespaced ? partAt(parts, at + 1) : ''
  // A namespace is an object too, and in itself.
  if (isNamespaced && parts.length > at + 2) at += 2
  const resource = partAt(parts, at)
  const inPath = partAt(parts, at + 1)
  const subresource = partAt(parts, at + 2)
  const verb = isWatchPath ? 'watch' : verbOf(request, inPath !== '')
  // Paths that are watches by themselves are about all objects, whatever is selected among them.
  const isSelection = inPath === '' && !isWatchPath && (verb === 'list' || verb === 'watch')
  const name = isSelection ? selectedName(request.query, group) : inPath
  return { isResource: true, verb, group, version, resource, subresource, namespace, name, path }
}

/** Without the slashes at both ends. Not by a pattern: those take long for a path of slashes. */
function partsOf(path: string): string[] {
  let from = 0
  let to = path.length
  while (from < to && path[from] === '/') from++
  while (to > from && path[to - 1] === '/') to--
  return path.slice(from, to).split('/')
}

function partAt(parts: readonly string[], at: number): string {
  return parts[at] ?? ''
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
function selectedName(query: URLSearchParams, group: string): string {
  const selector = query.get('fieldSelector')
  if (selector === null || selector === '') return ''
  try {
    const fields = parseFieldSelector(selector, group === '' ? coreFieldNames : eventFieldNames)
    const named = fields.find(
      ({ field, operator }) => field === 'metadata.name' && operator === '=',
    )
    const name = named?.value ?? ''
    // No object has such a name.
    return name === '.' || name === '..' || /[/%]/.test(name) ? '' : name
  } catch {
    // Refused later, by whoever is asked for such a list.
    return ''
  }
}

function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false'
}
