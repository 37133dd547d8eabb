/**
 * JSON as a tree of plain values. Member names come from clients and are not trusted: members are
 * read and set with the functions of this file, so that `__proto__` and `constructor` are ordinary
 * names.
 */
export type Json = null | boolean | number | string | Json[] | JsonObject

export interface JsonObject {
  [name: string]: Json
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The object's own member of that name; inherited properties do not count. */
export function memberOf(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
}

/** The string member of that name; empty when it is absent or not a string. */
export function textOf(object: JsonObject, name: string): string {
  const value = memberOf(object, name)
  return typeof value === 'string' ? value : ''
}

/** Undefined when the bytes are not JSON. */
export function parsedJson(bytes: Buffer): Json | undefined {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}

export function setMember(object: JsonObject, name: string, value: Json): void {
  if (name !== '__proto__') object[name] = value
  else {
    Object.defineProperty(object, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    })
  }
}
