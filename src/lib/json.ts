/**
 * JSON as a tree of plain values. Names come from strangers: members are read and set through here,
 * so that `__proto__` and `constructor` are names like any other.
 */
export type Json = null | boolean | number | string | Json[] | JsonObject

export interface JsonObject {
  [name: string]: Json
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Its own member of that name; what every object inherits does not count. */
export function memberOf(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined
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
