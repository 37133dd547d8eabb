import { JSON_DEPTH_MAX } from '../../codec/json/json-text.ts'
import { isObject, type Json, memberOf } from '../../lib/json.ts'
import { checkSize, clipped, PatchDocument, type Place } from './patch-document.ts'
import { PatchError } from './patch-error.ts'

const OPERATIONS_MAX = 10_000

/** Limits all pointers together, which are parsed at once and retained until the patch is applied. */
const NAMES_MAX = 100_000

/** Unknown fields beyond this number are not reported. */
const UNKNOWN_FIELDS_MAX = 100

/** A parsed JSON patch (RFC 6902) whose members have the right types. */
export interface JsonPatch {
  readonly operations: readonly Operation[]
  /** The first hundred unknown members of operations, as `[2].name`. */
  readonly unknownFields: readonly string[]
}

/** Applying it checks whether the operation exists and has the members it needs. */
export interface Operation {
  readonly op: string | undefined
  readonly path: Pointer
  readonly from: Pointer
  /** Null if missing, as in Kubernetes. */
  readonly value: Json
}

/** Checks only types and sizes; fails with `malformed`, `too-many-operations` or `too-large`. */
export function readJsonPatch(patch: Json): JsonPatch {
  if (!Array.isArray(patch)) throw malformed('a JSON patch must be a list of operations')
  if (patch.length > OPERATIONS_MAX) {
    throw new PatchError(
      'too-many-operations',
      `The allowed maximum operations in a JSON patch is ${OPERATIONS_MAX}, got ${patch.length}`,
    )
  }
  const unknownFields: string[] = []
  const pointers = new Pointers()
  const operations = patch.map((operation, index) => {
    if (operation !== null && !isObject(operation)) {
      throw malformed(`operation ${index} must be an object`)
    }
    const fields = operation ?? {}
    for (const name of Object.keys(fields)) {
      if (unknownFields.length === UNKNOWN_FIELDS_MAX) break
      if (!FIELDS.has(name)) unknownFields.push(`[${index}].${clipped(name)}`)
    }
    return {
      op: textOf(memberOf(fields, 'op'), index, 'op'),
      path: pointers.read('path', textOf(memberOf(fields, 'path'), index, 'path')),
      from: pointers.read('from', textOf(memberOf(fields, 'from'), index, 'from')),
      value: memberOf(fields, 'value') ?? null,
    }
  })
  return { operations, unknownFields }
}

const FIELDS: ReadonlySet<string> = new Set(['op', 'path', 'from', 'value'])

function textOf(value: Json | undefined, index: number, name: string): string | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return value
  throw malformed(`${name} of operation ${index} must be a string`)
}

function malformed(why: string): PatchError {
  return new PatchError('malformed', `error decoding patch: ${why}`)
}

/**
 * Applies all operations in order, or none: the PatchError names the first one that fails. More
 * lenient than the RFC, like Kubernetes: `replace` sets a missing member, for `copy` and `test` a
 * missing member is null, and positions may be negative.
 */
export function applyJsonPatch(document: Json, patch: JsonPatch): Json {
  const draft = new PatchDocument(document)
  for (const [index, operation] of patch.operations.entries()) {
    try {
      applyOperation(draft, operation)
    } catch (error) {
      if (!(error instanceof PatchError)) throw error
      const { op = 'no op', path } = operation
      const subject = `operation ${index} (${clipped(`${op} ${path.text ?? 'no path'}`)})`
      throw new PatchError(error.kind, `${subject}: ${error.message}`, error)
    }
  }
  // Checked at the end: between two moves a value may be nested deeper than the limit.
  checkSize(draft.root)
  return draft.root
}

function applyOperation(draft: PatchDocument, operation: Operation): void {
  const apply = OPERATIONS.get(operation.op)
  if (apply === undefined) throw new PatchError('failed', 'there is no such operation')
  apply(draft, operation)
}

const OPERATIONS: ReadonlyMap<string | undefined, typeof applyOperation> = new Map([
  ['add', add],
  ['remove', remove],
  ['replace', replace],
  ['move', move],
  ['copy', copy],
  ['test', test],
])

function add(draft: PatchDocument, { path, value }: Operation): void {
  draft.add(placeOf(path), value)
}

function remove(draft: PatchDocument, { path }: Operation): void {
  draft.remove(placeOf(path))
}

function replace(draft: PatchDocument, { path, value }: Operation): void {
  if (path.text !== '') draft.replace(placeOf(path), value)
  else if (typeof value === 'object' && value !== null) draft.root = value
  else throw new PatchError('failed', 'only an object or a list can replace the document')
}

function move(draft: PatchDocument, operation: Operation): void {
  const from = placeOf(operation.from)
  const to = placeOf(operation.path)
  if (to.length > from.length && from.every((name, depth) => name === to[depth])) {
    throw new PatchError('failed', 'a value cannot be moved into itself')
  }
  draft.add(to, draft.remove(from))
}

function copy(draft: PatchDocument, { from, path }: Operation): void {
  const copied = draft.copyOf(placeOf(from))
  draft.add(placeOf(path), copied)
}

function test(draft: PatchDocument, { path, value }: Operation): void {
  const found = path.text === '' ? draft.root : draft.get(placeOf(path))
  if (!draft.isEqual(found, value)) throw new PatchError('failed', 'the value differs')
}

/** A JSON pointer (RFC 6901), parsed once for all attempts to apply its patch. */
interface Pointer {
  /** Undefined when the client sent none. */
  readonly text: string | undefined
  /** The place in the document, or the error to throw when the pointer is used. */
  readonly to: Place | string
}

/** Parses the pointers of one patch. Equal texts share names: a long patch repeats few paths. */
class Pointers {
  readonly #namesOf = new Map<string, readonly string[]>()
  #namesLeft = NAMES_MAX

  read(field: 'path' | 'from', text: string | undefined): Pointer {
    if (text === undefined) return { text, to: `${field} is missing` }
    if (text === '') return { text, to: `${field} cannot be the whole document` }
    if (!text.startsWith('/')) return { text, to: `${field} must start with a slash` }
    const names = this.#names(text)
    this.#namesLeft -= names.length
    if (this.#namesLeft < 0) {
      const most = `The allowed maximum of names in the paths of a JSON patch is ${NAMES_MAX}`
      throw new PatchError('too-large', most)
    }
    if (names.length > JSON_DEPTH_MAX) {
      return { text, to: `${field} has more than ${JSON_DEPTH_MAX} names` }
    }
    return { text, to: names }
  }

  #names(text: string): readonly string[] {
    const known = this.#namesOf.get(text)
    if (known !== undefined) return known
    // No document is nested deeper than the limit, so the rest need not be parsed.
    const [, ...escaped] = text.split('/', JSON_DEPTH_MAX + 2)
    const names = text.includes('~') ? escaped.map(unescaped) : escaped
    this.#namesOf.set(text, names)
    return names
  }
}

function placeOf({ to }: Pointer): Place {
  if (typeof to === 'string') throw new PatchError('failed', to)
  return to
}

/** A regular expression is too slow for ten thousand paths full of escapes. */
function unescaped(name: string): string {
  let result = ''
  let from = 0
  for (let at = name.indexOf('~'); at !== -1; at = name.indexOf('~', at + 1)) {
    const mark = name[at + 1]
    if (mark !== '0' && mark !== '1') continue
    result += name.slice(from, at) + (mark === '0' ? '~' : '/')
    at += 1
    from = at + 1
  }
  return result + name.slice(from)
}
