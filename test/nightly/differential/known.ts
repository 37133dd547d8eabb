/**
 * Every known difference, each by its row of docs/reference/compatibility.md. The first rule that matches
 * counts, so the most specific ones come first. Those of patches and owners are in
 * known-patches.ts, parts of a response with their own rows in explanation.ts.
 */
import { isDeepStrictEqual } from 'node:util'
import { messageOf } from './digest.ts'
import { PATCHES } from './known-patches.ts'
import { INTERNALS, isAnotherMistake, MISTAKES_AS_500 } from './mistakes.ts'
import {
  causesOf,
  hasQuery,
  isAny,
  isClientMistake,
  isDone,
  isRefused,
  isSameRefusal,
  isYaml,
  type KnownDifference,
  kindOf,
  repeatedNames,
  warningsOf,
} from './signs.ts'
import { isChange, sentText } from './step.ts'

const RFC3339 =
  /parsing time \\?"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:[Zz]|[+-]\d\d:\d\d)\\?"/

/** Next line, line and paragraph separator, byte order mark. */
const UNUSUAL_SPACE = /[\u0085\u2028\u2029\ufeff]/

export const KNOWN: readonly KnownDifference[] = [
  {
    row: 'collection-delete-status',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'delete-collection' &&
      ours.status === 200 &&
      theirs.status === 200 &&
      kindOf(ours) === 'Status' &&
      /^Table$|List$/.test(kindOf(theirs)) &&
      ours.warning === theirs.warning,
  },
  {
    // Several events cannot be deleted, and each server reports the first that it met.
    row: 'collection-delete-stops',
    explains: ({ step, ours, theirs, places }) =>
      step.verb === 'delete-collection' &&
      ours.status === 409 &&
      theirs.status === 409 &&
      places.every((place) => /^\.content\.(?:message|details\.name): /.test(place)) &&
      messageOf(ours).replace(/ on Event "[^"]*"/, '') ===
        messageOf(theirs).replace(/ on Event "[^"]*"/, ''),
  },
  {
    row: 'client-mistake-is-4xx',
    explains: ({ ours, theirs }) =>
      isClientMistake(ours) &&
      theirs.status === 500 &&
      (messageOf(ours) === messageOf(theirs) || isAny(MISTAKES_AS_500, messageOf(theirs))),
  },
  {
    // It panics, and closes the connection.
    row: 'client-mistake-is-4xx',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'json-patch' &&
      isClientMistake(ours) &&
      theirs.status === 0 &&
      /socket hang up|ECONNRESET/.test(String(theirs.content)),
  },
  {
    row: 'yaml-says-any-text',
    explains: ({ step, ours, theirs, places }) =>
      ours.contentType === 'application/yaml' &&
      isDone(ours) &&
      (/control characters are not allowed/.test(messageOf(theirs)) ||
        places.every((place) =>
          /^\.content\[\d+\]: .*(?:<<|uFEFF|\\\\N|\u0085|\u2028)/.test(place),
        ) ||
        (isChange(step) &&
          UNUSUAL_SPACE.test(sentText(step)) &&
          places.every((place) => /^\.content\.\S+: "/.test(place)))),
  },
  {
    row: 'json-escapes-in-apply',
    explains: ({ step, ours, theirs }) =>
      (step.verb === 'apply' || isYaml(step)) &&
      (theirs.status === 400
        ? /unknown escape character|control characters|invalid Unicode|expected hexdecimal/.test(
            messageOf(theirs),
          )
        : UNUSUAL_SPACE.test(sentText(step)) &&
          [ours, theirs].every((digest) => isDone(digest) || [409, 422].includes(digest.status))),
  },
  {
    row: 'one-document-in-a-body',
    explains: ({ step, ours }) =>
      (step.verb === 'apply' || isYaml(step)) &&
      ours.status === 400 &&
      /yaml: more than one document/.test(messageOf(ours)),
  },
  {
    row: 'stricter-times',
    explains: ({ ours }) =>
      isClientMistake(ours) &&
      /parsing time \\?"(?:[^"]*T3:04|[^"]*\+24:00|10000-)/.test(messageOf(ours)),
  },
  {
    row: 'dry-run-tells-the-truth',
    explains: ({ step, ours, theirs }) =>
      theirs.status === 201 &&
      hasQuery(step, 'dryRun') &&
      /^resourceVersion should not be set/.test(messageOf(ours)),
  },
  {
    // Done, or refused for the next mistake.
    row: 'more-field-labels',
    explains: ({ step, ours, theirs }) =>
      hasQuery(step, 'fieldSelector') &&
      (isDone(ours) || isClientMistake(ours)) &&
      /^field label not supported: (?:action|reportingInstance|related\.|name|since|until|mentions|text|search|order|limit)/.test(
        messageOf(theirs),
      ),
  },
  {
    // Only the hint: a collection delete that selects other events would change all later responses.
    row: 'several-values-in-selectors',
    explains: ({ step, ours, theirs }) =>
      hasQuery(step, 'fieldSelector') &&
      messageOf(ours).startsWith(`${messageOf(theirs)}; for several values write `),
  },
  {
    // A page has other rows; the columns and everything else are compared.
    row: 'tables-by-time',
    explains: ({ step, ours, theirs, places }) =>
      step.verb === 'list' &&
      kindOf(ours) === 'Table' &&
      kindOf(theirs) === 'Table' &&
      places.every((place) => /^\.content\.rows\b/.test(place)),
  },
  {
    // The next page of a table, in its order, as a list.
    row: 'tables-by-time',
    explains: ({ step, before, ours, theirs, places }) =>
      step.verb === 'list' &&
      hasQuery(step, 'continue') &&
      isDone(ours) &&
      isDone(theirs) &&
      before.some((one) => one.verb === 'list' && /as=Table/.test(one.headers['accept'] ?? '')) &&
      places.every((place) => /^\.content\.items\b/.test(place)),
  },
  {
    row: 'last-page-is-told',
    explains: ({ step, ours, theirs, places }) =>
      step.verb === 'list' &&
      isDone(ours) &&
      isDone(theirs) &&
      ['fieldSelector', 'labelSelector', 'shardSelector'].some((name) => hasQuery(step, name)) &&
      hasQuery(step, 'limit') &&
      places.every((place) => /^\.content\.metadata\.continue: missing/.test(place)),
  },
  {
    row: 'handmade-continue-tokens',
    explains: ({ step, ours, theirs }) =>
      step.query.some(([name, value]) => name === 'continue' && value.startsWith('eyJ')) &&
      [200, 410].includes(theirs.status) &&
      (ours.status === 410 || /^invalid continue token: /.test(messageOf(ours))),
  },
  {
    row: 'repeated-objects',
    explains: ({ step, ours, theirs }) =>
      theirs.status < 500 &&
      (warningsOf(ours).length > 0 || isRefused(ours)) &&
      repeatedNames(step).some(({ isObject }) => isObject),
  },
  {
    // The other server parses each of several values, and rejects the first one with a wrong type.
    row: 'repeated-objects',
    explains: ({ step, theirs }) =>
      [400, 422].includes(theirs.status) &&
      /cannot unmarshal/.test(messageOf(theirs)) &&
      repeatedNames(step).length > 0,
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
    explains: ({ ours, theirs }) =>
      isRefused(theirs) && RFC3339.test(messageOf(theirs)) && !RFC3339.test(messageOf(ours)),
  },
  {
    row: 'any-rfc3339-time',
    explains: ({ step, theirs }) =>
      theirs.status === 422 &&
      /Timestamp: Invalid value/.test(messageOf(theirs)) &&
      /imestamp['"]?: ?['"]?[^'",\n]*\.\d+/.test(sentText(step)),
  },
  {
    row: 'dry-run-shows-no-version',
    explains: ({ step, ours, theirs, places }) =>
      hasQuery(step, 'dryRun') &&
      isDone(ours) &&
      isDone(theirs) &&
      places.every((place) =>
        /metadata\.(?:resourceVersion|selfLink|managedFields): missing/.test(place),
      ),
  },
  {
    row: 'deletion-is-the-servers',
    explains: ({ step, theirs }) =>
      /deletion(?:Timestamp|GracePeriodSeconds)/.test(sentText(step)) &&
      /metadata\.deletion\w+: Invalid value/.test(messageOf(theirs)),
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
      /(?:eventTime|lastObservedTime|(?:f|F)irstTimestamp|(?:l|L)astTimestamp)['"]?\s*:\s*(?:[|>]-?\s*)?['"]?0001-01-01T00:00:00/.test(
        sentText(step),
      ),
  },
  {
    row: 'collection-delete-keeps-newer',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'delete-collection' &&
      [200, 409].includes(ours.status) &&
      [200, 410].includes(theirs.status) &&
      hasQuery(step, 'resourceVersion'),
  },
  ...PATCHES,
  {
    row: 'own-words',
    explains: ({ ours, theirs }) =>
      isSameRefusal(ours, theirs) &&
      ours.warning === theirs.warning &&
      isAny(INTERNALS, messageOf(theirs)),
  },
  { row: 'which-mistake-is-told', explains: isAnotherMistake },
]
