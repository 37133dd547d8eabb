/**
 * Which row of docs/reference/compatibility.md explains a difference. An unexplained difference fails the
 * run.
 *
 * A response may differ in several ways at once: a warning, the layout of an error and whether a
 * patch was a write have their own rows, and the remaining differences must have one, too.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Digest } from './digest.ts'
import { KNOWN } from './known.ts'
import {
  type Found,
  hasQuery,
  isDone,
  isPatch,
  isRead,
  isRefused,
  isSameRefusal,
  type KnownDifference,
  kindOf,
  warningsOf,
} from './signs.ts'

/** A part of a response that has its own row, independent of other differences. */
interface KnownPart extends KnownDifference {
  readonly places: RegExp
}

const PARTS: readonly KnownPart[] = [
  {
    row: 'shards-are-served',
    places: /^\.content\.metadata\.shardInfo: /,
    explains: ({ ours }) => /^Table$|^PartialObjectMetadataList$/.test(kindOf(ours)),
  },
  {
    row: 'refusals-in-the-form-asked-for',
    places: /^\.(?:isPretty|contentType): |^\.content\.metadata: missing, wanted \{\}/,
    explains: ({ step, ours, theirs }) =>
      isRefused(ours) && isRefused(theirs) && 'accept' in step.headers,
  },
  {
    row: 'failed-patches-warn',
    places: /^\.warning: /,
    explains: ({ step, ours, theirs }) =>
      isPatch(step) && isSameRefusal(ours, theirs) && ours.warning !== '' && theirs.warning === '',
  },
  {
    row: 'selectors-that-match-nothing',
    places: /^\.warning: /,
    explains: ({ step, ours, theirs }) =>
      hasQuery(step, 'fieldSelector') && isDone(ours) && isDone(theirs) && theirs.warning === '',
  },
  {
    row: 'strategic-directives',
    places: /^\.warning: /,
    explains: ({ step, ours, theirs }) =>
      step.verb === 'strategic-patch' &&
      isDeepStrictEqual(
        warningsOf(ours),
        warningsOf(theirs).filter((warning) => !/^"unknown field .*\$\w+/.test(warning)),
      ),
  },
  {
    row: 'repeated-names-by-path',
    places: /^\.warning: /,
    explains: ({ ours, theirs }) =>
      /duplicate field/.test(ours.warning) &&
      (/line \d+: key .* already set in map/.test(theirs.warning) ||
        warningsOf(ours).every((warning) => warningsOf(theirs).includes(warning))),
  },
  {
    row: 'order-of-warnings',
    places: /^\.warning: /,
    explains: ({ ours, theirs }) => isDeepStrictEqual(warningsOf(ours), warningsOf(theirs)),
  },
  {
    // A patch that copies metadata to a place where nothing knows its fields.
    row: 'managed-fields-begin-with-apply',
    places: /^\.warning: /,
    explains: ({ step, ours, theirs }) =>
      isPatch(step) && isDeepStrictEqual(withoutOwners(ours), withoutOwners(theirs)),
  },
  {
    // The owner of a field that only one of them has.
    row: 'managed-fields-begin-with-apply',
    places: /^\.content\.metadata\.managedFields/,
    explains: ({ ours, theirs, places }) =>
      isDone(ours) &&
      isDone(theirs) &&
      places.some((place) => /^\.content(?!\.metadata\.managedFields)/.test(place)),
  },
  {
    // Only the last writer has changed, or another difference explains it.
    row: 'managed-fields-begin-with-apply',
    places: /^\.isWritten: /,
    explains: ({ step, places }) =>
      places.length > 1 ||
      ((isPatch(step) || step.verb === 'update') && places[0] === '.isWritten: false, wanted true'),
  },
]

/** Explains an event, whether it was sent alone or in the row of a table. */
export function explanationOf(found: Found): string | undefined {
  const places = found.places.map((place) =>
    place.replace(/^\.content\.rows\[0\]\.object\./, '.content.'),
  )
  return rowOf(isRead(found.step) ? found : { ...found, places })
}

function rowOf(found: Found): string | undefined {
  const whole = KNOWN.find(({ explains }) => explains(found))
  if (whole !== undefined) return whole.row
  const part = PARTS.find(
    (candidate) =>
      found.places.some((place) => candidate.places.test(place)) && candidate.explains(found),
  )
  if (part === undefined) return rowOfEach(found)
  const places = found.places.filter((place) => !part.places.test(place))
  return places.length === 0 ? part.row : rowOf({ ...without(part, found), places })
}

/** Explains an event that differs in several places, each for its own reason. */
function rowOfEach(found: Found): string | undefined {
  if (!isDone(found.ours) || !isDone(found.theirs) || found.places.length < 2) return undefined
  const rows = found.places.map((place) => rowOf({ ...found, places: [place] }))
  return rows.includes(undefined) ? undefined : rows[0]
}

/** Makes the part the same in both responses. */
function without({ places }: KnownPart, { theirs, ...found }: Found): Found {
  const { warning } = places.test('.warning: ') ? found.ours : theirs
  return { ...found, theirs: { ...theirs, warning } }
}

export const KNOWN_ROWS: readonly string[] = [...KNOWN, ...PARTS].map(({ row }) => row)

function withoutOwners(response: Digest): readonly string[] {
  return warningsOf(response).filter((warning) => !warning.includes('.managedFields'))
}
