import type { ObjectMeta, OwnerReference } from '../event.ts'
import {
  cutText,
  type FieldError,
  invalidField,
  invalidText,
  requiredField,
} from './field-error.ts'
import { type Problems, truncatedJson } from './problems.ts'

const FIELD = 'metadata.ownerReferences'
/** This many references exceed a truncated value, so more need not be encoded. */
const ENCODED_MAX = 100

/**
 * Each owner needs all four names and must not be a core/v1 Event. At most one is the controller.
 */
export function checkOwnerReferences(
  problems: Problems,
  references: readonly OwnerReference[],
): void {
  let controller: OwnerReference | undefined
  let shown: string | undefined
  for (const [at, reference] of references.entries()) {
    if (problems.full) return
    checkOwnerReference(problems, `${FIELD}[${at}]`, reference)
    if (reference.controller !== true) continue
    if (controller === undefined) controller = reference
    else {
      shown ??= truncatedJson(references.slice(0, ENCODED_MAX).map(encodable))
      problems.add(secondController(shown, controller, reference))
    }
  }
}

/**
 * Removes duplicate references. `warning` is sent to the client and contains the UID of each
 * removed reference. `when` is added to the warning for duplicates that a patch produced.
 */
export function dedupOwnerReferences(
  meta: ObjectMeta,
  when = '',
): {
  readonly meta: ObjectMeta
  readonly warning?: string
} {
  const references = meta.ownerReferences
  if (references === undefined || references.length < 2) return { meta }
  const unique = new Map<string, OwnerReference>()
  const repeated: string[] = []
  for (const reference of references) {
    const identity = identityOf(reference)
    if (unique.has(identity)) repeated.push(reference.uid ?? '')
    else unique.set(identity, reference)
  }
  if (repeated.length === 0) return { meta }
  return {
    meta: { ...meta, ownerReferences: [...unique.values()] },
    warning:
      `.${FIELD} contains duplicate entries${when}; API server dedups owner references in 1.20+, ` +
      'and may reject such requests as early as 1.24; please fix your requests; ' +
      `duplicate UID(s) observed: ${cutText(repeated.join(', '))}`,
  }
}

function checkOwnerReference(problems: Problems, field: string, reference: OwnerReference): void {
  const { apiVersion = '', kind = '', name = '', uid = '' } = reference
  if (apiVersion === '') problems.add(requiredField(`${field}.apiVersion`, 'must not be empty'))
  else if (!hasVersion(apiVersion)) {
    const detail = 'must be <group>/<version> or <version>'
    problems.add(invalidText(`${field}.apiVersion`, apiVersion, detail))
  }
  if (kind === '') problems.add(requiredField(`${field}.kind`, 'must not be empty'))
  if (name === '') problems.add(requiredField(`${field}.name`, 'must not be empty'))
  if (uid === '') problems.add(requiredField(`${field}.uid`, 'must not be empty'))
  if (kind === 'Event' && (apiVersion === 'v1' || apiVersion === '/v1')) {
    const detail = '/v1, Kind=Event is disallowed from being an owner'
    problems.add(invalidField(field, truncatedJson(encodable(reference)), detail))
  }
}

function secondController(
  shown: string,
  first: OwnerReference,
  second: OwnerReference,
): FieldError {
  return invalidField(
    FIELD,
    shown,
    'Only one reference can have Controller set to true. ' +
      `Found "true" in references for ${controllerName(first)} and ${controllerName(second)}`,
  )
}

function controllerName({ kind = '', name = '' }: OwnerReference): string {
  return cutText(`${kind}/${name}`)
}

/** `version` or `group/version`. */
function hasVersion(apiVersion: string): boolean {
  const slash = apiVersion.indexOf('/')
  return slash + 1 < apiVersion.length && !apiVersion.includes('/', slash + 1)
}

/** The same for equal references. An unset flag differs from one that is false. */
function identityOf(reference: OwnerReference): string {
  const { apiVersion = '', kind = '', name = '', uid = '' } = reference
  const lengths = `${apiVersion.length},${kind.length},${name.length}`
  const flags = `${reference.controller},${reference.blockOwnerDeletion}`
  return `${lengths},${flags},${apiVersion}${kind}${name}${uid}`
}

/** The reference as clients see it: always with all four names, in this order. */
function encodable(reference: OwnerReference): OwnerReference {
  const { apiVersion = '', kind = '', name = '', uid = '' } = reference
  const { controller, blockOwnerDeletion } = reference
  return {
    apiVersion,
    kind,
    name,
    uid,
    ...(controller === undefined ? {} : { controller }),
    ...(blockOwnerDeletion === undefined ? {} : { blockOwnerDeletion }),
  }
}
