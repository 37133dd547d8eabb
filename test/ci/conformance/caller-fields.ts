/**
 * The recorded server names fields of an invalid Event by their core/v1 names, even for a caller of
 * events.k8s.io, which never sent those. Our errors name the fields that the caller sent.
 */
import { isObject, type Json, type JsonObject, memberOf } from '../../../src/lib/json.ts'

const CALLER_NAMES: ReadonlyMap<string, string> = new Map([
  ['involvedObject', 'regarding'],
  ['message', 'note'],
  ['source', 'deprecatedSource'],
  ['count', 'deprecatedCount'],
  ['firstTimestamp', 'deprecatedFirstTimestamp'],
  ['lastTimestamp', 'deprecatedLastTimestamp'],
])
const FIELD_IN_MESSAGE = new RegExp(
  `(?<=^|[\\s[])(${[...CALLER_NAMES.keys()].join('|')})(?=[:.])`,
  'g',
)

/**
 * The recorded Status of an invalid Event with the field names of events.k8s.io; any other Status
 * unchanged. For example, the message about an invalid selector repeats it as the caller wrote it.
 */
export function inCallerNames(answer: Json): Json {
  if (!isObject(answer) || answer['kind'] !== 'Status' || answer['reason'] !== 'Invalid') {
    return answer
  }
  const { message, details } = answer
  return {
    ...answer,
    ...(typeof message === 'string' && {
      message: message.replace(FIELD_IN_MESSAGE, callerName),
    }),
    ...(isObject(details) && { details: renameCauses(details) }),
  }
}

/** The error for an invalid type has the recorded text, and ours adds the allowed types. */
export function withAllowedTypes(answer: Json): Json {
  if (!isObject(answer) || answer['kind'] !== 'Status') return answer
  const text = JSON.stringify(answer, (_, value) =>
    typeof value === 'string'
      ? value.replace(INVALID_TYPE, '$& (must be Normal or Warning)')
      : value,
  )
  return JSON.parse(text)
}

/** Up to the next field, or the end. */
const INVALID_TYPE = /has invalid value: .*?(?=, \w+(?:\.\w+)*: |(?<!\[)\]$|$)/s

function renameCauses(details: JsonObject): JsonObject {
  const causes = memberOf(details, 'causes')
  if (!Array.isArray(causes)) return details
  return { ...details, causes: causes.map(renameField) }
}

function renameField(cause: Json): Json {
  if (!isObject(cause) || typeof cause['field'] !== 'string') return cause
  return { ...cause, field: cause['field'].replace(/^\w+/, callerName) }
}

function callerName(name: string): string {
  return CALLER_NAMES.get(name) ?? name
}
