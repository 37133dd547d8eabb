import { queryBoolean } from '../../api/query-boolean.ts'
import { invalid } from '../../api/status.ts'
import {
  type FieldError,
  forbiddenField,
  invalidText,
  requiredField,
  tooLongField,
  unsupportedField,
} from '../../api/validation/field-error.ts'
import { goQuote } from '../../lib/go/go-quote.ts'
import { truncate } from '../../lib/text/truncate.ts'
import { dryRunErrors, readText } from './query-values.ts'

/** The handling of unknown and duplicate fields. */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict'

export interface WriteOptions {
  readonly isDryRun: boolean
  readonly fieldValidation: FieldValidation
  /** The owner of the written fields; empty if the caller did not send one. See `managerOf`. */
  readonly fieldManager: string
}

export interface PatchOptions extends WriteOptions {
  /** Whether an apply takes over fields that others own. */
  readonly isForced: boolean
}

const defaults: WriteOptions = { isDryRun: false, fieldValidation: 'Warn', fieldManager: '' }

const managerBytesMax = 128

/** Throws a 422 for invalid options. */
export function readCreateOptions(query: URLSearchParams): WriteOptions {
  return readWriteOptions('CreateOptions', query)
}

/** Throws a 422 for invalid options. */
export function readUpdateOptions(query: URLSearchParams): WriteOptions {
  return readWriteOptions('UpdateOptions', query)
}

/** Throws a 422 for options that are invalid or that this kind of patch does not support. */
export function readPatchOptions(
  query: URLSearchParams,
  patch: { readonly isApply: boolean },
): PatchOptions {
  const force = queryBoolean(query, 'force')
  const errors: FieldError[] = []
  if (patch.isApply && readText(query, 'fieldManager') === '') {
    errors.push(requiredField('fieldManager', 'is required for apply patch'))
  }
  if (!patch.isApply && force !== undefined) {
    errors.push(forbiddenField('force', 'may not be specified for non-apply patch'))
  }
  return { ...readWriteOptions('PatchOptions', query, errors), isForced: force === true }
}

/**
 * Returns the owner of the fields that a request writes: its `fieldManager`, otherwise the program
 * that sent it, named by the first word of its User-Agent.
 */
export function managerOf(fieldManager: string, userAgent = ''): string {
  if (fieldManager !== '') return fieldManager
  let manager = ''
  for (const character of userAgent.split('/', 1)[0] ?? '') {
    if (!isPrintable(character)) continue
    if (Buffer.byteLength(manager + character) > managerBytesMax) break
    manager += character
  }
  return manager === '' ? 'unknown' : manager
}

function readWriteOptions(
  kind: string,
  query: URLSearchParams,
  errors: readonly FieldError[] = [],
): WriteOptions {
  if (query.size === 0 && errors.length === 0) return defaults
  const fieldManager = readText(query, 'fieldManager')
  const dryRun = query.getAll('dryRun')
  const fieldValidation = readText(query, 'fieldValidation')
  const all = [
    ...errors,
    ...managerErrors(fieldManager),
    ...dryRunErrors(dryRun),
    ...validationErrors(fieldValidation),
  ]
  if (all.length > 0) throw invalid({ kind, group: 'meta.k8s.io', name: '' }, all)
  return {
    isDryRun: dryRun.length > 0,
    fieldValidation: fieldValidation === '' ? 'Warn' : (fieldValidation as FieldValidation),
    fieldManager,
  }
}

function managerErrors(manager: string): readonly FieldError[] {
  if (Buffer.byteLength(manager) > managerBytesMax) {
    return [tooLongField('fieldManager', `may not be more than ${managerBytesMax} bytes`)]
  }
  const errors: FieldError[] = []
  let position = 0
  for (const character of manager) {
    if (!isPrintable(character)) {
      const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
      const detail = `invalid character U+${code} (at position ${position})`
      errors.push(invalidText('fieldManager', manager, detail))
    }
    position += Buffer.byteLength(character)
  }
  return errors
}

function validationErrors(fieldValidation: string): readonly FieldError[] {
  const supported = ['', 'Ignore', 'Strict', 'Warn']
  if (supported.includes(fieldValidation)) return []
  return [unsupportedField('fieldValidation', goQuote(truncate(fieldValidation)), supported)]
}

function isPrintable(character: string): boolean {
  return character === ' ' || /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(character)
}
