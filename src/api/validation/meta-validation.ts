import { goQuote } from '../../lib/go/go-quote.ts'
import type { ObjectMeta, StringMap } from '../event.ts'
import {
  cutText,
  forbiddenField,
  invalidField,
  invalidText,
  requiredField,
  tooLongField,
} from './field-error.ts'
import {
  isQualifiedName,
  labelProblems,
  labelValueProblems,
  type NameRule,
  qualifiedNameProblems,
} from './names.ts'
import { checkOwnerReferences } from './owner-references.ts'
import { type Problems, truncatedJson } from './problems.ts'

/** The maximum for names and values together. */
const ANNOTATIONS_BYTES_MAX = 262_144
/** An error for new finalizers of an object that is being deleted lists at most this many. */
const NEW_FINALIZERS_MAX = 100
/** Finalizers that need no domain prefix. */
const STANDARD_FINALIZERS: ReadonlySet<string> = new Set([
  'kubernetes',
  'orphan',
  'foregroundDeletion',
])
const IMMUTABLE = 'field is immutable'

/** Validates the metadata of any namespaced object. */
export function checkMeta(problems: Problems, meta: ObjectMeta, names: NameRule): void {
  const { name = '', generateName = '', namespace = '' } = meta
  if (generateName !== '') {
    const details = names.prefix(generateName)
    problems.addInvalid('metadata.generateName', generateName, details)
  }
  if (name === '') {
    problems.add(requiredField('metadata.name', 'name or generateName is required'))
  } else problems.addInvalid('metadata.name', name, names.name(name))
  if (namespace === '') problems.add(requiredField('metadata.namespace'))
  else problems.addInvalid('metadata.namespace', namespace, labelProblems(namespace))
  const { generation = 0 } = meta
  if (generation < 0) {
    const detail = 'must be greater than or equal to 0'
    problems.add(invalidField('metadata.generation', String(generation), detail))
  }
  if (meta.labels !== undefined) checkLabels(problems, meta.labels)
  if (meta.annotations !== undefined) checkAnnotations(problems, meta.annotations)
  if (meta.ownerReferences !== undefined) checkOwnerReferences(problems, meta.ownerReferences)
  if (meta.finalizers !== undefined) checkFinalizers(problems, meta.finalizers)
}

/**
 * Checks that immutable metadata is unchanged, after the server has set what clients may omit, such
 * as the UID.
 */
export function checkMetaUpdate(problems: Problems, meta: ObjectMeta, old: ObjectMeta): void {
  if (old.deletionTimestamp !== undefined) checkNoNewFinalizers(problems, meta, old)
  if ((meta.generation ?? 0) < (old.generation ?? 0)) {
    const shown = String(meta.generation ?? 0)
    problems.add(invalidField('metadata.generation', shown, 'must not be decremented'))
  }
  for (const [member, shownAs] of IMMUTABLE_TEXTS) {
    const value = meta[member] ?? ''
    if (value === (old[member] ?? '')) continue
    problems.add(invalidField(`metadata.${member}`, shownAs(value), IMMUTABLE))
  }
  for (const member of IMMUTABLE_OR_NULL) {
    if (meta[member] === old[member]) continue
    const shown = truncatedJson(meta[member] ?? null)
    problems.add(invalidField(`metadata.${member}`, shown, IMMUTABLE))
  }
}

/** A finalizer without a domain must be a standard one. */
export function checkFinalizersQualified(problems: Problems, meta: ObjectMeta): void {
  const finalizers = meta.finalizers ?? []
  for (const [at, finalizer] of finalizers.entries()) {
    if (problems.full) return
    if (finalizer.includes('/') || STANDARD_FINALIZERS.has(finalizer)) continue
    const detail = 'name is neither a standard finalizer name nor is it fully qualified'
    problems.add(invalidText(`metadata.finalizers[${at}]`, finalizer, detail))
  }
}

const quoted = (text: string): string => goQuote(cutText(text))
/** Kubernetes prints a uid as JSON, because its type is not a plain string. */
const IMMUTABLE_TEXTS = [
  ['name', quoted],
  ['namespace', quoted],
  ['uid', truncatedJson],
] as const

/** Unlike strings, these are printed as null when they are unset. */
const IMMUTABLE_OR_NULL = [
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
] as const

function checkLabels(problems: Problems, labels: StringMap): void {
  for (const key in labels) {
    if (problems.full) return
    problems.addInvalid('metadata.labels', key, qualifiedNameProblems(key))
    const value = labels[key] ?? ''
    problems.addInvalid('metadata.labels', value, labelValueProblems(value))
  }
}

function checkAnnotations(problems: Problems, annotations: StringMap): void {
  let codeUnits = 0
  for (const key in annotations) {
    if (problems.full) return
    if (codeUnits > ANNOTATIONS_BYTES_MAX) break
    // Upper case is valid on both sides of the slash, unlike in a label.
    if (!isQualifiedName(key)) {
      const details = qualifiedNameProblems(key.toLowerCase())
      problems.addInvalid('metadata.annotations', key, details)
    }
    codeUnits += key.length + (annotations[key] ?? '').length
  }
  // A code unit takes one to three bytes, so most annotations need no exact count.
  if (codeUnits * 3 <= ANNOTATIONS_BYTES_MAX) return
  if (codeUnits > ANNOTATIONS_BYTES_MAX || byteLength(annotations) > ANNOTATIONS_BYTES_MAX) {
    const detail = `may not be more than ${ANNOTATIONS_BYTES_MAX} bytes`
    problems.add(tooLongField('metadata.annotations', detail))
  }
}

function byteLength(annotations: StringMap): number {
  let bytes = 0
  for (const key in annotations) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(annotations[key] ?? '')
  }
  return bytes
}

function checkFinalizers(problems: Problems, finalizers: readonly string[]): void {
  for (const finalizer of finalizers) {
    if (problems.full) return
    problems.addInvalid('metadata.finalizers', finalizer, qualifiedNameProblems(finalizer))
  }
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    const detail = 'finalizer orphan and foregroundDeletion cannot be both set'
    problems.add(invalidField('metadata.finalizers', truncatedJson(finalizers), detail))
  }
}

function checkNoNewFinalizers(problems: Problems, meta: ObjectMeta, old: ObjectMeta): void {
  const known = new Set(old.finalizers)
  const added = new Set<string>()
  for (const finalizer of meta.finalizers ?? []) {
    if (!known.has(finalizer)) added.add(finalizer)
    if (added.size >= NEW_FINALIZERS_MAX) break
  }
  if (added.size === 0) return
  const names = [...added].sort().map((name) => goQuote(cutText(name)))
  problems.add(
    forbiddenField(
      'metadata.finalizers',
      'no new finalizers can be added if the object is being deleted, ' +
        `found new finalizers []string{${cutText(names.join(', '))}}`,
    ),
  )
}
