import { goQuote } from '../lib/go-quote.ts'

/** Values are shown whole up to this many characters. */
const SHOWN_MAX = 4096

/** What is wrong with one field, in the parts that a Status tells it by. */
export interface FieldError {
  /** Such as `metadata.name`. */
  readonly field: string
  readonly cause:
    | 'FieldValueRequired'
    | 'FieldValueInvalid'
    | 'FieldValueNotSupported'
    | 'FieldValueForbidden'
    | 'FieldValueTooLong'
    | 'FieldValueDuplicate'
  /** `Invalid value: "x": must be lower case`, without the field. */
  readonly body: string
}

export function requiredField(field: string, detail = ''): FieldError {
  return { field, cause: 'FieldValueRequired', body: withDetail('Required value', detail) }
}

/** `shown` is the value as it is printed: quoted if it is a string, JSON if it is a structure. */
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

/** One error as it is, several in brackets; what is said twice is printed once. */
export function fieldErrorsText(errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map(({ field, body }) => `${field}: ${body}`))]
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`
}

/** Enough of a text to recognise it by; a client may have sent megabytes. */
export function cutText(text: string): string {
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}...`
}

function withDetail(text: string, detail: string): string {
  return detail === '' ? text : `${text}: ${detail}`
}
