/** Known differences of patches, and of field ownership. */
import { isDeepStrictEqual } from 'node:util'
import { isObject, type Json, memberOf } from '../../../src/lib/json.ts'
import { type Digest, messageOf } from './digest.ts'
import { MISTAKES_AS_500 } from './mistakes.ts'
import {
  changingFrames,
  conflictsOf,
  hasFinalizerTwice,
  hasOwnerTwice,
  isAny,
  isApplyConflict,
  isDone,
  isOfVersionOrKind,
  isPatch,
  isRefused,
  isSameRefusal,
  isWrittenByOtherGroup,
  type KnownDifference,
  warningsOf,
} from './signs.ts'
import { type Step, sentText } from './step.ts'

const PRINTED_WHEN_EMPTY =
  /^\.(?:eventTime|reporting(?:Component|Instance|Controller)|source|\w*[tT]imestamp|deprecatedSource|series\.lastObservedTime)$/

/** The members of fieldsV1 that an empty event of Kubernetes has, and those of empty objects. */
const OWNED_WHEN_EMPTY =
  /^f:(?:eventTime|reporting(?:Component|Instance|Controller)|\w*[sS]ource|\w*[tT]imestamp|related|series)$/

function ownersOf({ content }: Digest): readonly Json[] {
  const metadata = isObject(content) ? memberOf(content, 'metadata') : undefined
  const owners = isObject(metadata) ? memberOf(metadata, 'managedFields') : undefined
  return Array.isArray(owners) ? owners : []
}

function ownsOnlyEmpty(entry: Json): boolean {
  const fields = isObject(entry) ? memberOf(entry, 'fieldsV1') : undefined
  return isObject(fields) && Object.keys(fields).every((name) => OWNED_WHEN_EMPTY.test(name))
}

/** Whether the body has the field with an empty value. */
function isEmptied(step: Step, field: string): boolean {
  const name = field.split('.').at(-1)
  return new RegExp(`\\b${name}['"]?: ?(?:null|\\[\\]|\\{\\})`).test(sentText(step))
}

export const PATCHES: readonly KnownDifference[] = [
  {
    row: 'patch-of-another-type',
    explains: ({ step, ours, theirs }) =>
      isPatch(step) &&
      ours.status === 400 &&
      [200, 400, 422].includes(theirs.status) &&
      /^error decoding patch: a .* must be/.test(messageOf(ours)),
  },
  {
    row: 'failed-patch-says-why',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'json-patch' &&
      isSameRefusal(ours, theirs) &&
      /^operation \d+ \(/.test(messageOf(ours)) &&
      /^the server rejected our request due to an error in our request$/.test(messageOf(theirs)),
  },
  {
    row: 'json-patch-copy-into-itself',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'json-patch' &&
      isRefused(ours) &&
      isDone(theirs) &&
      /"op":"copy"/.test(sentText(step)) &&
      /"path":"(\/[^"]*)\/[^"]*","from":"\1"|"from":"(\/[^"]*)","path":"\2\//.test(sentText(step)),
  },
  {
    row: 'patched-version-and-kind',
    explains: ({ step, ours, theirs }) =>
      isPatch(step) &&
      isOfVersionOrKind(step) &&
      (isRefused(ours) || isRefused(theirs)) &&
      /name must be provided|apiVersion|API version|cannot be handled as|undeterminable|Object 'Kind' is missing/.test(
        `${messageOf(ours)} ${messageOf(theirs)}`,
      ),
  },
  {
    row: 'owners-in-both-groups',
    explains: (found) =>
      found.step.verb === 'apply' &&
      isApplyConflict(found.ours) &&
      [200, 409, 422].includes(found.theirs.status) &&
      isWrittenByOtherGroup(found) &&
      !isDeepStrictEqual(conflictsOf(found.ours), conflictsOf(found.theirs)),
  },
  {
    // Fields that the manager applied through the other group, and does not apply any more.
    row: 'owners-in-both-groups',
    explains: (found) =>
      found.step.verb === 'apply' &&
      [found.ours, found.theirs].every((digest) => isDone(digest) || digest.status === 422) &&
      found.before.some(({ verb }) => verb === 'apply') &&
      isWrittenByOtherGroup(found) &&
      found.places.every((place) => /^\.(?:content|status)/.test(place)),
  },
  {
    row: 'managed-fields-begin-with-apply',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'apply' &&
      isApplyConflict(ours) &&
      isApplyConflict(theirs) &&
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
    explains: ({ step, places }) =>
      step.comparesOwners === true &&
      places.every((place) => /\.manager: "before-first-apply", wanted "/.test(place)),
  },
  {
    row: 'managed-fields-begin-with-apply',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'json-patch' &&
      [ours, theirs].every(({ status }) => [200, 400, 422].includes(status)) &&
      sentText(step).includes('/metadata/managedFields'),
  },
  {
    // After a patch that changes nothing.
    row: 'managed-fields-begin-with-apply',
    explains: ({ step, ours, theirs, places }) =>
      step.verb === 'watch' &&
      places.every((place) => place.startsWith('.content: ')) &&
      isDeepStrictEqual(ours.content, changingFrames(theirs)),
  },
  {
    // From the version of an event whose owners were patched away, which is no write here.
    row: 'managed-fields-begin-with-apply',
    explains: ({ step, before, places }) =>
      step.verb === 'watch' &&
      step.query.some(([name, value]) => name === 'resourceVersion' && value.startsWith('@{')) &&
      before.some((one) => isPatch(one) && sentText(one).includes('"managedFields"')) &&
      places.every((place) => place.startsWith('.content: ')),
  },
  {
    row: 'owners-of-repeated-entries',
    explains: ({ step, ours, places }) =>
      step.comparesOwners === true &&
      hasFinalizerTwice(ours) &&
      places.every((place) => place.startsWith('.content.metadata.managedFields')),
  },
  {
    // An apply that wants the finalizer once is a conflict with that update.
    row: 'owners-of-repeated-entries',
    explains: ({ step, before, ours, theirs, places }) =>
      step.verb === 'apply' &&
      [ours, theirs].every((one) => /^Apply failed with/.test(messageOf(one))) &&
      before.some((one) => /"finalizers":\["([^"]+)","\1"/.test(sentText(one))) &&
      places.every((place) => /^\.content\.(?:message|details\.causes)\b/.test(place)),
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
    row: 'last-finalizer-removed',
    explains: ({ step, before, places }) =>
      (isPatch(step) || step.verb === 'update') &&
      before.some(({ verb }) => verb.startsWith('delete')) &&
      places.every((place) =>
        /^\.isWritten: true, wanted false$|metadata\.selfLink: missing/.test(place),
      ),
  },
  {
    row: 'numbers-that-do-not-fit',
    explains: ({ step, ours }) =>
      (step.verb === 'strategic-patch' || step.verb === 'apply') &&
      [400, 422].includes(ours.status) &&
      /cannot unmarshal number -?\d{10,} into/.test(messageOf(ours)),
  },
  {
    row: 'strategic-directives',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'strategic-patch' &&
      ours.status === 400 &&
      theirs.status < 500 &&
      /^\$(?:patch|retainKeys|setElementOrder|deleteFrom)|^entries of this list must be /.test(
        messageOf(ours),
      ),
  },
  {
    row: 'strategic-directives',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'strategic-patch' &&
      isDone(ours) &&
      theirs.status === 500 &&
      isAny(MISTAKES_AS_500, messageOf(theirs)),
  },
  {
    row: 'strategic-directives',
    explains: ({ step, ours, theirs, places }) =>
      step.verb === 'strategic-patch' &&
      isDone(ours) &&
      isDone(theirs) &&
      /"\$patch":"(?:replace|merge)"/.test(sentText(step)) &&
      places.every((place) => /^\.content\.metadata\.\w+: unexpected/.test(place)),
  },
  {
    // A directive inside of what another one replaces, which Kubernetes takes for a field.
    row: 'strategic-directives',
    explains: ({ step, ours, theirs }) =>
      step.verb === 'strategic-patch' &&
      isDone(ours) &&
      theirs.status === 422 &&
      /"\$patch":"replace"/.test(sentText(step)) &&
      warningsOf(theirs).some((warning) => /\$patch/.test(warning)),
  },
  {
    // An order that does not name the items that the patch adds.
    row: 'strategic-directives',
    explains: ({ step, ours, places }) =>
      step.verb === 'strategic-patch' &&
      (isDone(ours) || ours.status === 422) &&
      /"\$setElementOrder\/\w+":\[\]/.test(sentText(step)) &&
      places.every((place) => /^\.content\..*\b(?:finalizers|ownerReferences)\b.*\[/.test(place)),
  },
  {
    // The other server applies the directive and the list in random order.
    row: 'strategic-directives',
    explains: ({ step, ours, theirs, places }) =>
      step.verb === 'strategic-patch' &&
      isDone(ours) &&
      isDone(theirs) &&
      /"\$deleteFromPrimitiveList\/finalizers":/.test(sentText(step)) &&
      /"finalizers":\[/.test(sentText(step)) &&
      places.every((place) => /^\.(?:content\.metadata\.finalizers|isWritten)/.test(place)),
  },
  {
    row: 'strategic-lists-are-sets',
    explains: ({ step, places }) =>
      step.verb === 'strategic-patch' &&
      places.every((place) => /^\.content\.metadata\.finalizers: \d+ items instead of/.test(place)),
  },
  {
    row: 'strategic-lists-are-sets',
    explains: ({ step, ours, theirs, places }) =>
      step.verb === 'strategic-patch' &&
      isSameRefusal(ours, theirs) &&
      /"finalizers":\["([^"]+)","\1"/.test(sentText(step)) &&
      places.every((place) => /^\.content\.(?:message|details\.causes)/.test(place)),
  },
  {
    row: 'strategic-lists-are-sets',
    explains: ({ step, theirs, places }) =>
      step.verb === 'strategic-patch' &&
      hasOwnerTwice(step) &&
      (isDone(theirs)
        ? places.every((place) =>
            /^\.(?:content\.metadata\.|warning: .*)ownerReferences/.test(place),
          )
        : /metadata\.ownerReferences(?:\[\d+\])?(?:\.\w+)?: (?:Invalid|Required) value|^ "" is invalid: patch: Invalid value/.test(
            messageOf(theirs),
          )),
  },
  {
    row: 'empty-fields-have-no-owner',
    explains: ({ step, places }) =>
      step.comparesOwners === true &&
      places.every((place) =>
        /^\.content\.metadata\.managedFields.*f:(?:reporting(?:Component|Instance|Controller)|eventTime|source|related|lastObservedTime|\w*[tT]imestamp|series\.(?=\.: missing))(?:: missing|: unexpected|\.)/.test(
          place,
        ),
      ),
  },
  {
    // All that a manager owns is empty, so there is no entry for it.
    row: 'empty-fields-have-no-owner',
    explains: ({ step, ours, theirs, places }) =>
      step.comparesOwners === true &&
      places.every((place) => /^\.content\.metadata\.managedFields: \d+ items/.test(place)) &&
      ownersOf(theirs)
        .filter((entry) => !ownersOf(ours).some((one) => isDeepStrictEqual(one, entry)))
        .every(ownsOnlyEmpty),
  },
  {
    row: 'empty-fields-have-no-owner',
    explains: ({ step, before, places }) =>
      step.comparesOwners === true &&
      places.every((place) => {
        const owned = /^\.content\.metadata\.managedFields\S* (?:missing|unexpected).*/.exec(place)
        const name = [...(owned?.[0] ?? '').matchAll(/f:(\w+)/g)].at(-1)?.[1]
        return name !== undefined && [...before, step].some((one) => isEmptied(one, name))
      }),
  },
  {
    row: 'empty-fields-have-no-owner',
    explains: ({ step, ours, theirs }) => {
      if (step.verb !== 'apply' || !isApplyConflict(theirs)) return false
      if (!isApplyConflict(ours) && !isDone(ours) && ours.status !== 422) return false
      const [here, there] = [isApplyConflict(ours) ? conflictsOf(ours) : [], conflictsOf(theirs)]
      return (
        here.every((field) => there.includes(field)) &&
        there
          .filter((field) => !here.includes(field))
          .every((field) => PRINTED_WHEN_EMPTY.test(field) || isEmptied(step, field))
      )
    },
  },
]
