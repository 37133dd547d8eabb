import { isObject, type Json, type JsonObject, memberOf, setMember } from '../../lib/json.ts'
import { PatchError } from './patch-error.ts'

/**
 * Applies a JSON merge patch (RFC 7386): objects merge member by member, null removes, everything else
 * replaces. The result shares parts with both. Recurses as deep as the patch, which the parser limits.
 */
export function applyMergePatch(document: Json, patch: Json): Json {
  // The recorded message of Kubernetes.
  if (patch === null) throw new PatchError('malformed', 'Invalid JSON Patch')
  if (!isObject(patch)) {
    throw new PatchError('malformed', 'error decoding patch: a merge patch must be an object')
  }
  return merged(isObject(document) ? document : {}, patch)
}

function merged(target: JsonObject, patch: JsonObject): JsonObject {
  const names = Object.keys(patch)
  if (names.length === 0) return target
  const result = { ...target }
  for (const name of names) {
    const value = patch[name]
    if (value === undefined) continue
    if (value === null) delete result[name]
    else setMember(result, name, replacement(memberOf(target, name), value))
  }
  return result
}

function replacement(current: Json | undefined, value: Json): Json {
  if (!isObject(value)) return value
  if (isObject(current)) return merged(current, value)
  return withoutNulls(value)
}

/** The patch without its nulls, or the patch itself if it has none. */
function withoutNulls(patch: JsonObject): JsonObject {
  let result: JsonObject | undefined
  for (const name of Object.keys(patch)) {
    const value = patch[name]
    const inner = isObject(value) ? withoutNulls(value) : value
    if (inner === value && value !== null) continue
    result ??= { ...patch }
    if (inner === null || inner === undefined) delete result[name]
    else setMember(result, name, inner)
  }
  return result ?? patch
}
