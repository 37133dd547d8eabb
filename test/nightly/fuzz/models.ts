/**
 * Reference implementations of patches, as simple as possible: on plain objects, without regard to
 * speed. The server's result of a patch must equal theirs.
 */
type Plain = null | boolean | number | string | Plain[] | { [name: string]: Plain }
type PlainObject = { [name: string]: Plain }

/** The patch cannot be applied. */
export class CannotPatch extends Error {}

export function modelMergePatch(target: unknown, patch: unknown): unknown {
  if (!isPlainObject(patch)) return patch
  const result = new Map(isPlainObject(target) ? Object.entries(target) : [])
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) result.delete(name)
    else result.set(name, modelMergePatch(result.get(name), value) as Plain)
  }
  return objectOf(result)
}

interface Operation {
  readonly op?: unknown
  readonly path?: unknown
  readonly from?: unknown
  readonly value?: Plain
}

/** Applies a JSON patch as the API server does: `replace` may add, a missing member reads as null. */
export function modelJsonPatch(document: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw new CannotPatch('no list')
  return (patch as (Operation | null)[]).reduce(modelOperation, structuredClone(document) as Plain)
}

/** Returns the document after it: the same object, changed, unless it was replaced as a whole. */
function modelOperation(root: Plain, operation: Operation | null): Plain {
  const value = structuredClone((own(operation, 'value') ?? null) as Plain)
  const path = own(operation, 'path')
  const from = own(operation, 'from')
  switch (own(operation, 'op')) {
    case 'add':
      insert(root, pointer(path), value)
      return root
    case 'remove':
      take(root, pointer(path))
      return root
    case 'replace':
      if (path === '') return wholeOf(value)
      replace(root, pointer(path), value)
      return root
    case 'move':
      moveTo(root, pointer(from), pointer(path))
      return root
    case 'copy':
      insert(root, pointer(path), structuredClone(read(root, pointer(from))))
      return root
    case 'test':
      if (isSame(path === '' ? root : read(root, pointer(path)), value)) return root
      throw new CannotPatch('another value')
    default:
      throw new CannotPatch('no operation')
  }
}

function wholeOf(value: Plain): Plain {
  if (typeof value === 'object' && value !== null) return value
  throw new CannotPatch('all of it')
}

function moveTo(root: Plain, from: readonly string[], to: readonly string[]): void {
  if (to.length > from.length && from.every((name, at) => name === to[at])) {
    throw new CannotPatch('into itself')
  }
  insert(root, to, take(root, from))
}

function pointer(path: unknown): readonly string[] {
  if (typeof path !== 'string' || !path.startsWith('/')) throw new CannotPatch('no pointer')
  return path
    .slice(1)
    .split('/')
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function read(root: Plain, names: readonly string[]): Plain {
  return names.reduce<Plain>((value, name) => {
    if (Array.isArray(value)) return value[position(value.length, name)] ?? null
    if (isPlainObject(value)) return (own(value, name) as Plain | undefined) ?? null
    throw new CannotPatch('nothing there')
  }, root)
}

function parentOf(root: Plain, names: readonly string[]): Plain[] | PlainObject {
  const parent = read(root, names.slice(0, -1))
  if (typeof parent === 'object' && parent !== null) return parent
  throw new CannotPatch('no place')
}

function insert(root: Plain, names: readonly string[], value: Plain): void {
  const parent = parentOf(root, names)
  const name = names.at(-1) ?? ''
  if (Array.isArray(parent)) {
    const at = name === '-' ? parent.length : position(parent.length + 1, name)
    parent.splice(at, 0, value)
  } else set(parent, name, value)
}

function replace(root: Plain, names: readonly string[], value: Plain): void {
  const parent = parentOf(root, names)
  const name = names.at(-1) ?? ''
  if (Array.isArray(parent)) parent[position(parent.length, name)] = value
  else set(parent, name, value)
}

function take(root: Plain, names: readonly string[]): Plain {
  const parent = parentOf(root, names)
  const name = names.at(-1) ?? ''
  if (Array.isArray(parent)) {
    const [taken = null] = parent.splice(position(parent.length, name), 1)
    return taken
  }
  if (!Object.hasOwn(parent, name)) throw new CannotPatch('nothing to take')
  const taken = parent[name] ?? null
  delete parent[name]
  return taken
}

function position(length: number, name: string): number {
  const at = /^[+-]?\d{1,15}$/.test(name) ? Number(name) : Number.NaN
  const index = at < 0 ? at + length : at
  if (index >= 0 && index < length) return index
  throw new CannotPatch('no position')
}

function isSame(one: Plain, other: Plain): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((value, at) => isSame(value, other[at] ?? null))
  }
  if (isPlainObject(one) && isPlainObject(other)) {
    const names = Object.keys(one)
    if (names.length !== Object.keys(other).length) return false
    return names.every(
      (name) => Object.hasOwn(other, name) && isSame(one[name] ?? null, other[name] ?? null),
    )
  }
  return one === other
}

function own(object: unknown, name: string): unknown {
  return isPlainObject(object) && Object.hasOwn(object, name) ? object[name] : undefined
}

function set(object: PlainObject, name: string, value: Plain): void {
  Object.defineProperty(object, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  })
}

function objectOf(members: ReadonlyMap<string, Plain>): PlainObject {
  const object: PlainObject = {}
  for (const [name, value] of members) set(object, name, value)
  return object
}

function isPlainObject(value: unknown): value is PlainObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
