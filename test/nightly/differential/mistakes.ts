/** The texts with which the two servers reject a request. */
import { messageOf } from './digest.ts'
import { type Found, isAny, isApplyConflict, isClientMistake, isRead } from './signs.ts'

/** 500 responses of the other server for client errors. */
export const MISTAKES_AS_500: readonly RegExp[] = [
  /^failed to (?:create typed patch object|convert new object) \(/,
  /^(?:resourceVersion: Invalid value: .*: )?strconv\.ParseUint: parsing /s,
  /^unknown patch type: /,
  /^invalid shard selector: /,
  /^no elements in any of the given slices/,
  /^The order in patch list:/,
  / does not contain declared merge key: uid$/,
  /^list element types are not identical: /,
  /^expected a \[\]interface \{\}, but received a /,
  /^expected a map\[string\]interface \{\}, but received a /,
]

/** About the query of a read, or the options of a delete. */
const QUERY_MISTAKES: readonly RegExp[] = [
  /^couldn't get version\/kind; /,
  /^field label not supported: /,
  /^invalid (?:field )?selector: /,
  /^unable to parse requirement: /,
  /^invalid shard selector: /,
  /^found '/,
  /^(?:List|Delete)Options\.meta\.k8s\.io "" is invalid: /,
  /^strconv\.Parse/,
  /^invalid resource version: /,
  /^invalid continue token: /,
  /^specifying resource version is not allowed when using continue/,
  /^Unable to convert to Table as requested: includeObject: /,
]

/** About a body that is not the JSON of an event. */
const UNREADABLE: readonly RegExp[] = [
  /cannot be handled as a Event: /,
  /^the object provided is unrecognized/,
  /^ "" is invalid: patch: Invalid value: /,
  /^error (?:strict )?(?:de|en)coding /,
  /^invalid JSON patch$/,
  /^the API version in the data /,
  /^invalid object type: /,
]

/** About a body that does not match the event in the path. */
const OF_ANOTHER_EVENT: readonly RegExp[] = [
  /^the name(?:space)? of the (?:provided )?object .*does not match/s,
  /^the name of the object .* was undeterminable/,
]

/** Texts about internals of the other server. */
export const INTERNALS: readonly RegExp[] = [
  /into Go (?:struct field|value)/,
  /parsing time "/,
  /^ "" is invalid: patch: Invalid value: "/,
  /StorageError: invalid object/,
  /in scheme "|unknown conversion$/,
  /\(\*core\.EventList\)$|\(\*core\.Event\)$/,
  /^error (?:de|en)coding patch: /,
  /^invalid patch format of /,
  /^invalid JSON patch$/i,
  /^unexpected end of JSON input|^invalid character/,
  /yaml: |json: unsupported value/,
  /^invalid continue token: /,
  /^continue key is not valid/,
]

/** Both servers are right to reject it, for different reasons. */
export function isAnotherMistake({ step, ours, theirs }: Found): boolean {
  if (!isClientMistake(ours) || !isClientMistake(theirs)) return false
  const [our, their] = [messageOf(ours), messageOf(theirs)]
  return (
    ours.status === 406 ||
    ours.status === 415 ||
    /^resourceVersion should not be set/.test(our) ||
    isAny(OF_ANOTHER_EVENT, our) ||
    isAny(OF_ANOTHER_EVENT, their) ||
    (isRead(step) &&
      isAny(QUERY_MISTAKES, our) &&
      (theirs.status === 404 || isAny(QUERY_MISTAKES, their))) ||
    (isAny(UNREADABLE, our) && isAny(UNREADABLE, their)) ||
    (isAny(UNREADABLE, our) && isApplyConflict(theirs)) ||
    // The other server reads numbers only once it has found the event.
    (/^error decoding patch: number /.test(our) && theirs.status === 404)
  )
}
