import type { FieldRequirement } from '../../api/selectors/field-selector.ts'
import { badRequest } from '../../api/status.ts'
import { hasTexts, type RequiredText } from '../../storage/requires.ts'
import type { StoredEvent } from '../../storage/storage.ts'

/** Every event that the other terms leave, and each change of a watch, is searched for each text. */
const textsMax = 4
/** People search for words. The search for a long text in a long note can be made slow. */
const textLengthMax = 256

/** JSON has no escapes for these characters: a note that has them has them in the body. */
const PLAIN = /^[\w .:/()[\]{}@#%*+;|~^`$-]*$/

/** The texts of all `text` terms. */
export function textsOf(fields: readonly FieldRequirement[]): readonly RequiredText[] {
  const terms = fields.filter(({ field }) => field === 'text')
  if (terms.length > textsMax) throw badRequest(`a field selector has at most ${textsMax} texts`)
  if (terms.some(({ value }) => value.length > textLengthMax)) {
    throw badRequest(`text: a text has at most ${textLengthMax} characters`)
  }
  return terms.map(({ operator, value }) => ({
    text: value.toLowerCase(),
    isIn: operator === '=',
  }))
}

/** Tests whether the note or the reason contains the texts, ignoring case. */
export function textTest(texts: readonly RequiredText[]): (stored: StoredEvent) => boolean {
  const needed = texts.filter(({ text, isIn }) => isIn && PLAIN.test(text))
  return (stored) => {
    if (needed.length > 0) {
      // Most events are decided without parsing them.
      const body = stored.body.toString().toLowerCase()
      if (!needed.every(({ text }) => body.includes(text))) return false
    }
    return hasTexts(texts, stored.fields)
  }
}
