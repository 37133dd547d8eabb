/**
 * Every difference that is known, each by its row of docs/compatibility.md. What none of these
 * explains fails the run. The first that fits counts, so those that say the most come first.
 */
import { isDeepStrictEqual } from 'node:util'
import { isObject } from '../../src/lib/json.ts'
import { type Digest, messageOf, reasonOf, statusOf } from './digest.ts'
import { type Step, shownStep } from './step.ts'

export interface Found {
  readonly step: Step
  readonly ours: Digest
  readonly theirs: Digest
  /** Where they differ, one line each. */
  readonly places: readonly string[]
}

export interface KnownDifference {
  /** In docs/compatibility.md. */
  readonly row: string
  readonly explains: (found: Found) => boolean
}

export const KNOWN: readonly KnownDifference[] = [
  {
    row: 'collection-delete-status',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'delete-collection' && ours.status === 200 && theirs.status === 200,
  },
  {
    // Without an answer at all when it panics.
    row: 'client-mistake-is-4xx',
    explains: ({ step, ours, theirs }) =>
      isClientMistake(ours) &&
      (theirs.status === 500 || (theirs.status === 0 && step.verb === 'json-patch')),
  },
  {
    row: 'yaml-says-any-text',
    explains: ({ ours, theirs, places }) =>
      ours.contentType === 'application/yaml' &&
      (/control characters are not allowed/.test(messageOf(theirs)) ||
        places.every((place) =>
          /^\.content\[\d+\]: .*(?:<<|uFEFF|\\\\N|\u0085|\u2028)/.test(place),
        )),
  },
  {
    row: 'json-escapes-in-apply',
    explains: ({ step, theirs }) =>
      (step.verb === 'apply' || isYaml(step)) &&
      (/unknown escape character|control characters|invalid Unicode|expected hexdecimal/.test(
        messageOf(theirs),
      ) ||
        /[\u0085\u2028\u2029\ufeff]/.test(shownStep(step))),
  },
  {
    row: 'one-document-in-a-body',
    explains: ({ step, ours }) =>
      (step.verb === 'apply' || isYaml(step)) &&
      /yaml: more than one document/.test(messageOf(ours)),
  },
  {
    row: 'stricter-times',
    explains: ({ step, ours }) =>
      isClientMistake(ours) &&
      /T3:04|\+24:00|10000-/.test(shownStep(step)) &&
      /parsing time|out of range/.test(messageOf(ours)),
  },
  {
    row: 'dry-run-tells-the-truth',
    explains: ({ step, ours, theirs }) =>
      theirs.status === 201 &&
      step.query.some(([name]) => name === 'dryRun') &&
      /^resourceVersion should not be set/.test(messageOf(ours)),
  },
  {
    row: 'handmade-continue-tokens',
    explains: ({ step, ours }) =>
      isClientMistake(ours) &&
      step.query.some(([name, value]) => name === 'continue' && value.startsWith('eyJ')),
  },
  {
    row: 'patch-of-another-type',
    explains: ({ step, ours }) =>
      isPatch(step) &&
      ours.status === 400 &&
      /^error decoding patch: a .* must be/.test(messageOf(ours)),
  },
  {
    row: 'repeated-objects',
    explains: ({ ours, theirs, places }) =>
      /duplicate field|already set in map/.test(ours.warning + messageOf(ours)) &&
      /duplicate field|already set in map/.test(theirs.warning + messageOf(theirs)) &&
      places.some((place) => !place.startsWith('.warning: ')),
  },
  {
    row: 'failed-patch-says-why',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'json-patch' && isSameRefusal(ours, theirs) && ours.warning === theirs.warning,
  },
  {
    row: 'failed-patches-warn',
    explains: ({ step, ours, theirs }) =>
      isPatch(step) && isSameRefusal(ours, theirs) && ours.warning !== '' && theirs.warning === '',
  },
  {
    row: 'patched-version-and-kind',
    explains: ({ step, ours, theirs }) =>
      isPatch(step) &&
      /"(?:apiVersion|kind)":|"\/(?:apiVersion|kind)?"|"path":""/.test(shownStep(step)) &&
      (isRefused(ours) || isRefused(theirs)) &&
      /name must be provided|apiVersion|API version|cannot be handled as|undeterminable|Object 'Kind' is missing/.test(
        `${messageOf(ours)} ${messageOf(theirs)}`,
      ),
  },
  {
    row: 'wrong-version-is-refused-unread',
    explains: ({ ours, theirs }) =>
      isSameRefusal(ours, theirs) &&
      /^the API version in the data .* does not match/s.test(messageOf(ours)) &&
      ours.warning === '',
  },
  {
    row: 'any-rfc3339-time',
    explains: ({ step, theirs }) =>
      isRefused(theirs) &&
      (/parsing time "/.test(messageOf(theirs)) ||
        (/Timestamp: Invalid value/.test(messageOf(theirs)) &&
          /imestamp"?: ?"?[^",]*\.\d+/.test(shownStep(step)))),
  },
  {
    row: 'owners-in-both-groups',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'apply' &&
      step.comparesOwners !== true &&
      messageOf(ours).startsWith('Apply failed with') &&
      (theirs.status !== 409 || !isDeepStrictEqual(conflictsOf(ours), conflictsOf(theirs))),
  },
  {
    row: 'managed-fields-begin-with-apply',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'apply' &&
      step.comparesOwners !== true &&
      isSameRefusal(ours, theirs) &&
      isDeepStrictEqual(conflictsOf(ours), conflictsOf(theirs)),
  },
  {
    row: 'managed-fields-begin-with-apply',
    explains: ({ step, places }) =>
      step.comparesOwners === true &&
      places.some((place) => /managedFields: missing/.test(place)) &&
      places.every((place) =>
        /(?:managedFields|resourceVersion|selfLink|deletion\w+): missing/.test(place),
      ),
  },
  {
    row: 'managed-fields-begin-with-apply',
    explains: ({ step }) =>
      step.verb === 'json-patch' && shownStep(step).includes('/metadata/managedFields'),
  },
  {
    row: 'owners-have-a-time',
    explains: ({ step, places }) =>
      step.comparesOwners === true &&
      places.every((place) =>
        /^\.content\.metadata\.managedFields\[\d+\]\.time: unexpected/.test(place),
      ),
  },
  {
    row: 'dry-run-shows-no-version',
    explains: ({ step, places }) =>
      step.query.some(([name]) => name === 'dryRun') &&
      places.every((place) =>
        /resourceVersion|selfLink|items instead of|managedFields: missing/.test(place),
      ),
  },
  {
    row: 'deletion-is-the-servers',
    explains: ({ theirs, places }) =>
      places.every((place) =>
        /^\.content\.metadata\.(?:resourceVersion|deletionGracePeriodSeconds|deletionTimestamp): missing/.test(
          place,
        ),
      ) || /metadata\.deletion\w+: Invalid value/.test(messageOf(theirs)),
  },
  {
    row: 'refusals-in-the-form-asked-for',
    explains: ({ ours, theirs, places }) =>
      isSameRefusal(ours, theirs) &&
      places.every((place) => /^\.(isPretty|contentType|content\.metadata): /.test(place)),
  },
  {
    row: 'repeated-names-by-path',
    explains: ({ ours, theirs, places }) =>
      places.every((place) => place.startsWith('.warning: ')) &&
      /duplicate field/.test(ours.warning) &&
      (/line \d+: key .* already set in map/.test(theirs.warning) ||
        theirs.warning.startsWith(ours.warning)),
  },
  {
    row: 'order-of-warnings',
    explains: ({ ours, theirs, places }) =>
      places.every((place) => place.startsWith('.warning: ')) &&
      isDeepStrictEqual(warningsOf(ours), warningsOf(theirs)),
  },
  {
    row: 'order-of-problems',
    explains: ({ ours, theirs }) =>
      isSameRefusal(ours, theirs) &&
      ours.status === 422 &&
      causesOf(ours).length > 1 &&
      isDeepStrictEqual(causesOf(ours), causesOf(theirs)),
  },
  {
    row: 'given-name-is-taken',
    explains: ({ ours, theirs }) =>
      isSameRefusal(ours, theirs) &&
      messageOf(theirs).endsWith(
        'the server was not able to generate a unique name for the object',
      ),
  },
  {
    row: 'whole-numbers',
    explains: ({ theirs }) =>
      isRefused(theirs) && /cannot unmarshal number (?:1\.0|1e2) into Go/.test(messageOf(theirs)),
  },
  {
    row: 'zero-time-is-no-time',
    explains: ({ step, ours, theirs }) =>
      (ours.status === 422 || theirs.status === 422) &&
      /(?:eventTime|lastObservedTime)"?: ?"?0001-01-01T00:00:00/.test(shownStep(step)),
  },
  {
    row: 'numbers-that-do-not-fit',
    explains: ({ step, ours }) =>
      step.verb === 'strategic-patch' &&
      ours.status === 422 &&
      /cannot unmarshal number -?\d{10,} into/.test(messageOf(ours)),
  },
  {
    row: 'strategic-directives',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'strategic-patch' &&
      (/\$(?:patch|retainKeys|setElementOrder|deleteFrom)/.test(shownStep(step)) ||
        (/"(?:ownerReferences|finalizers)":\[/.test(shownStep(step)) &&
          ours.status === 400 &&
          isClientMistake(theirs))),
  },
  {
    row: 'strategic-lists-are-sets',
    explains: ({ step, places }) =>
      step.verb === 'strategic-patch' &&
      places.every((place) => place.startsWith('.content.metadata.finalizers: ')),
  },
  {
    row: 'collection-delete-keeps-newer',
    explains: ({ step, ours }) =>
      step.verb === 'delete-collection' &&
      ours.status === 409 &&
      step.query.some(([name]) => name === 'resourceVersion'),
  },
  {
    row: 'empty-fields-have-no-owner',
    explains: ({ step, places }) =>
      step.comparesOwners === true &&
      places.every((place) =>
        /^\.content\.metadata\.managedFields.*f:(?:reporting(?:Component|Instance|Controller)|eventTime|source|\w*[tT]imestamp)(?:: missing|: unexpected|\.)/.test(
          place,
        ),
      ),
  },
  {
    row: 'which-mistake-is-told',
    explains: ({ step, ours, theirs }) =>
      isClientMistake(ours) &&
      isClientMistake(theirs) &&
      (ours.status === 406 ||
        /^resourceVersion should not be set/.test(messageOf(ours)) ||
        ours.status === 415 ||
        (step.verb === 'apply' && [ours.status, theirs.status].includes(409)) ||
        (isRead(step) &&
          ours.status !== theirs.status &&
          [400, 422].includes(ours.status) &&
          [400, 404, 422].includes(theirs.status))),
  },
  {
    row: 'own-words',
    explains: ({ ours, theirs }) =>
      isSameRefusal(ours, theirs) &&
      ours.warning === theirs.warning &&
      INTERNALS.some((words) => words.test(messageOf(theirs))),
  },
]

/** What only makes sense to who knows how the other server is built. */
const INTERNALS: readonly RegExp[] = [
  /into Go (?:struct field|value)/,
  /^ "" is invalid: patch: Invalid value: "/,
  /StorageError: invalid object/,
  /in scheme "|unknown conversion$/,
  /\(\*core\.EventList\)$/,
  /^error decoding patch: /,
  /^invalid patch format of /,
  /^unexpected end of JSON input|^invalid character/,
  /yaml: |json: unsupported value/,
  /^invalid continue token: /,
  /^continue key is not valid/,
]

export function explanationOf(found: Found): string | undefined {
  return KNOWN.find(({ explains }) => explains(found))?.row
}

function isPatch({ verb }: Step): boolean {
  return verb.endsWith('-patch') || verb === 'apply'
}

function isYaml({ headers }: Step): boolean {
  return headers['content-type'] === 'application/yaml'
}

/** Or a delete of a collection, which is a list first. */
function isRead({ verb }: Step): boolean {
  return verb === 'list' || verb === 'watch' || verb === 'delete-collection' || verb === 'get'
}

function isRefused({ status }: Digest): boolean {
  return status >= 400
}

function isClientMistake({ status }: Digest): boolean {
  return status >= 400 && status < 500
}

/** The same code and reason; only the words differ. */
function isSameRefusal(ours: Digest, theirs: Digest): boolean {
  return ours.status === theirs.status && isRefused(ours) && reasonOf(ours) === reasonOf(theirs)
}

/** The fields that an apply conflicts over, without who owns them. */
function conflictsOf(digest: Digest): readonly string[] {
  const fields = messageOf(digest).matchAll(/^- (.*)$|: (\.\S+)$/gm)
  return [...fields].map(([, listed, single]) => listed ?? single ?? '').sort()
}

function causesOf(digest: Digest): readonly string[] {
  const details = statusOf(digest)?.['details']
  const causes = isObject(details) ? details['causes'] : undefined
  return Array.isArray(causes) ? causes.map((cause) => JSON.stringify(cause)).sort() : []
}

function warningsOf({ warning }: Digest): readonly string[] {
  return warning
    .split(', 299 - ')
    .map((text) => text.replace(/^299 - /, ''))
    .sort()
}
