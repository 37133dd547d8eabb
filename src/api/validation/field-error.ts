import { goQuote } from '../../lib/go/go-quote.ts'

/** In UTF-16 code units, before quoting. */
const VALUE_LENGTH_MAX = 4096

/** One invalid field as a Status reports it; texts are those of Kubernetes. */
export interface FieldError {
  /** Such as `metadata.name`. */
  readonly field: string
  readonly cause:
    | 'FieldValueRequired'
    | 'FieldValueInvalid'
    | 'FieldValueNotSupported'
    | 'FieldValueForbidden'
    | 'FieldValueTooLong'
  /** `Invalid value: "x": must be lower case`, without the field. */
  readonly body: string
}

export function requiredField(field: string, detail = ''): FieldError {
  return { field, cause: 'FieldValueRequired', body: withDetail('Required value', detail) }
}

/** `shown` is the value as text: quoted if it is a string, JSON if it is a structure. */
export function invalidField(field: string, shown: string, detail: string): FieldError {
  return { field, cause: 'FieldValueInvalid', body: withDetail(`Invalid value: ${shown}`, detail) }
}

export function invalidText(field: string, value: string, detail: string): FieldError {
  return invalidField(field, goQuote(cutText(value)), detail)
}

export function forbiddenField(field: string, detail: string): FieldError {
  return { field, cause: 'FieldValueForbidden', body: withDetail('Forbidden', detail) }
}

export function unsupportedField(
  field: string,
  shown: string,
  supported: readonly string[],
): FieldError {
  const list = supported.map(goQuote).join(', ')
  return {
    field,
    cause: 'FieldValueNotSupported',
    body: `Unsupported value: ${shown}: supported values: ${list}`,
  }
}

export function tooLongField(field: string, detail: string): FieldError {
  return { field, cause: 'FieldValueTooLong', body: withDetail('Too long', detail) }
}

/** Formats one error as it is, and several in brackets, without duplicates. */
export function fieldErrorsText(errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map(({ field, body }) => `${field}: ${body}`))]
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`
}

/** Truncates a value for an error message, since a client may send megabytes. */
export function cutText(text: string): string {
  return text.length <= VALUE_LENGTH_MAX ? text : `${text.slice(0, VALUE_LENGTH_MAX)}...`
}

function withDetail(text: string, detail: string): string {
  return detail === '' ? text : `${text}: ${detail}`
}
