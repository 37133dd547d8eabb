import { EVENT_VALUES_MAX, JSON_DEPTH_MAX } from '../../codec/json/json-text.ts'
import { isObject, type Json, type JsonObject, memberOf, setMember } from '../../lib/json.ts'
import { PatchError } from './patch-error.ts'

/** Limits all `copy` operations together; Kubernetes uses the limit of a whole request. */
const COPIED_BYTES_MAX = 3 * 1024 * 1024

/**
 * Limits the list elements that insertions and removals shift. Only thousands of insertions at the
 * front of lists with many thousands of elements reach it, and they would block the event loop.
 */
const SHIFTED_MAX = 20_000_000

/** A path in a document: names and positions from the top. Never empty: the top has no path. */
export type Place = readonly string[]

type Container = JsonObject | Json[]

/**
 * A document that is changed with copy-on-write: neither the original nor any value put into it is
 * modified. An operation that cannot be applied fails with a PatchError, after which the document must
 * not be used.
 *
 * Positions in lists may count from the end (`-1` is the last); `-` is the position after the last.
 */
export class PatchDocument {
  #root: Json
  /** Containers that were copied and may be modified. */
  readonly #owned = new Set<Container>()
  /** Cached member counts: counting is linear, and thousands of tests may need them. */
  readonly #sizes = new Map<JsonObject, number>()
  #copiedBytes = 0
  #copiedValues = 0
  #shifted = 0

  constructor(document: Json) {
    this.#root = document
  }

  get root(): Json {
    return this.#root
  }

  set root(value: Json) {
    this.#root = value
  }

  /** A missing member of an object is null; a missing position of a list fails. */
  get(place: Place): Json {
    let value = this.#root
    for (let depth = 0; depth < place.length; depth += 1) {
      value = valueIn(containerAt(value, place, depth), place[depth] ?? '')
    }
    return value
  }

  /** Inserts into a list; sets a member of an object, whether it exists or not. */
  add(place: Place, value: Json): void {
    const parent = this.#writableParent(place)
    const name = lastOf(place)
    if (!Array.isArray(parent)) this.#set(parent, name, value)
    else {
      const index = name === '-' ? parent.length : positionIn(parent.length + 1, name)
      this.#shift(parent.length - index)
      parent.splice(index, 0, value)
    }
  }

  /** Sets a member of an object, whether it exists or not; a list must have the position. */
  replace(place: Place, value: Json): void {
    const parent = this.#writableParent(place)
    const name = lastOf(place)
    if (Array.isArray(parent)) parent[positionIn(parent.length, name)] = value
    else this.#set(parent, name, value)
  }

  /** Removes and returns a value; fails if there is none. */
  remove(place: Place): Json {
    const parent = this.#writableParent(place)
    const name = lastOf(place)
    const value = Array.isArray(parent) ? valueIn(parent, name) : memberOf(parent, name)
    if (value === undefined) throw new PatchError('failed', 'there is no such member')
    if (Array.isArray(parent)) {
      const index = positionIn(parent.length, name)
      this.#shift(parent.length - index)
      parent.splice(index, 1)
    } else {
      this.#resize(parent, -1)
      delete parent[name]
    }
    return value
  }

  /** A deep copy of the value at a place; counts against the limit of copied bytes. */
  copyOf(place: Place): Json {
    return this.#copied(this.get(place), 0)
  }

  /** Takes time proportional to `expected`, however large `value` is. */
  isEqual(value: Json, expected: Json): boolean {
    if (Array.isArray(expected)) {
      return (
        Array.isArray(value) &&
        value.length === expected.length &&
        expected.every((element, index) => this.isEqual(value[index] ?? null, element))
      )
    }
    if (!isObject(expected)) return value === expected
    if (!isObject(value)) return false
    const names = Object.keys(expected)
    return (
      names.length === this.#size(value) &&
      names.every((name) => {
        const member = memberOf(value, name)
        return member !== undefined && this.isEqual(member, expected[name] ?? null)
      })
    )
  }

  #writableParent(place: Place): Container {
    let container = this.#writable(containerAt(this.#root, place, 0))
    this.#root = container
    for (let depth = 1; depth < place.length; depth += 1) {
      const name = place[depth - 1] ?? ''
      const inner = containerAt(valueIn(container, name), place, depth)
      const writable = this.#writable(inner)
      if (writable !== inner) {
        if (Array.isArray(container)) container[positionIn(container.length, name)] = writable
        else setMember(container, name, writable)
      }
      container = writable
    }
    return container
  }

  #writable(container: Container): Container {
    if (this.#owned.has(container)) return container
    const own = Array.isArray(container) ? container.slice() : { ...container }
    this.#owned.add(own)
    return own
  }

  #set(object: JsonObject, name: string, value: Json): void {
    if (!Object.hasOwn(object, name)) this.#resize(object, 1)
    setMember(object, name, value)
  }

  #size(object: JsonObject): number {
    let size = this.#sizes.get(object)
    if (size === undefined) {
      size = Object.keys(object).length
      this.#sizes.set(object, size)
    }
    return size
  }

  #resize(object: JsonObject, change: number): void {
    const size = this.#sizes.get(object)
    if (size !== undefined) this.#sizes.set(object, size + change)
  }

  #shift(elements: number): void {
    this.#shifted += elements
    if (this.#shifted > SHIFTED_MAX) {
      throw new PatchError('too-large', 'the patch shifts too many elements of lists')
    }
  }

  #copied(value: Json, depth: number): Json {
    if (typeof value !== 'object' || value === null) {
      this.#countCopied(scalarBytes(value))
      return value
    }
    if (depth >= JSON_DEPTH_MAX)
      throw new PatchError('failed', 'the copied value is nested too deeply')
    this.#countCopied(2)
    if (Array.isArray(value)) return value.map((element) => this.#copied(element, depth + 1))
    const copy: JsonObject = {}
    for (const name of Object.keys(value)) {
      this.#countCopied(scalarBytes(name) + 1)
      setMember(copy, name, this.#copied(value[name] ?? null, depth + 1))
    }
    return copy
  }

  #countCopied(bytes: number): void {
    // One more for the comma, or for the closing bracket.
    this.#copiedBytes += bytes + 1
    this.#copiedValues += 1
    if (this.#copiedBytes > COPIED_BYTES_MAX) {
      throw new PatchError('too-large', `the patch copies more than ${COPIED_BYTES_MAX} bytes`)
    }
    if (this.#copiedValues > EVENT_VALUES_MAX) {
      throw new PatchError('too-large', `the patch copies more than ${EVENT_VALUES_MAX} values`)
    }
  }
}

/** Fails when a document is nested deeper, or has more values, than a request body may. */
export function checkSize(document: Json): void {
  let left = EVENT_VALUES_MAX
  const visit = (value: Json, depth: number): void => {
    if (--left < 0) throw tooManyValues()
    if (typeof value !== 'object' || value === null) return
    if (depth === JSON_DEPTH_MAX) throw tooDeep()
    const inner = Array.isArray(value) ? value : Object.values(value)
    if (inner !== value) left -= inner.length
    for (const each of inner) visit(each, depth + 1)
  }
  visit(document, 0)
}

function tooManyValues(): PatchError {
  const limit = `${EVENT_VALUES_MAX} names and values`
  return new PatchError('too-large', `the patched object has more than ${limit}`)
}

function tooDeep(): PatchError {
  return new PatchError('failed', `the patched object is more than ${JSON_DEPTH_MAX} levels deep`)
}

function containerAt(value: Json, place: Place, depth: number): Container {
  if (typeof value === 'object' && value !== null) return value
  const path = place.slice(0, depth).join('/')
  throw new PatchError('failed', `there is no object or list at "${clipped(`/${path}`)}"`)
}

function valueIn(container: Container, name: string): Json {
  const value = Array.isArray(container)
    ? container[positionIn(container.length, name)]
    : memberOf(container, name)
  return value ?? null
}

/** Like Kubernetes, allows signs and leading zeros; negative positions count backwards. */
function positionIn(length: number, name: string): number {
  const position = /^[+-]?\d{1,15}$/.test(name) ? Number(name) : Number.NaN
  const index = position < 0 ? position + length : position
  if (index >= 0 && index < length) return index
  throw new PatchError('failed', `the list has no position "${clipped(name)}"`)
}

function lastOf(place: Place): string {
  return place.at(-1) ?? ''
}

function scalarBytes(value: Exclude<Json, Container>): number {
  return typeof value === 'string' ? Buffer.byteLength(value) + 2 : String(value).length
}

/** Truncates a client's text for an error message. */
export function clipped(text: string): string {
  return text.length <= 120 ? text : `${text.slice(0, 120)}…`
}
