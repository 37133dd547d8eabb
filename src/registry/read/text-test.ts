import type { FieldRequirement } from '../../api/selectors/field-selector.ts'
import { badRequest } from '../../api/status.ts'
import { hasTexts, type RequiredText } from '../../storage/requires.ts'
import type { StoredEvent } from '../../storage/storage.ts'

/** Every event that the other terms leave, and each change of a watch, is searched for each text. */
const textsMax = 4
/** People search for words. The search for a long text in a long note can be made slow. */
const textLengthMax = 256

/** JSON has no escapes for these characters: an event that has them has them in the body. */
const PLAIN = /^[\w .:/()[\]{}@#%*+;|~^`$-]*$/

/** Whether the body of an event that contains the text contains it unchanged. */
export function isPlainText(text: string): boolean {
  return PLAIN.test(text)
}

export function isTextTerm({ field }: Pick<FieldRequirement, 'field'>): boolean {
  return field === 'text' || field === 'search'
}

/** The texts of all `text` and `search` terms. */
export function textsOf(fields: readonly FieldRequirement[]): readonly RequiredText[] {
  const terms = fields.filter(isTextTerm)
  const texts = terms.flatMap(({ patterns }) => patterns)
  if (texts.length > textsMax) throw badRequest(`a field selector has at most ${textsMax} texts`)
  for (const { label, patterns } of terms) {
    if (patterns.some(({ text }) => text.length > textLengthMax)) {
      throw badRequest(`${label}: a text has at most ${textLengthMax} characters`)
    }
  }
  return terms.map(({ field, operator, patterns }) => ({
    texts: patterns.map(({ text }) => text.toLowerCase()),
    isIn: operator === '=',
    isAnywhere: field === 'search',
  }))
}

/** Tests whether the event contains the texts, ignoring case. */
export function textTest(required: readonly RequiredText[]): (stored: StoredEvent) => boolean {
  const needed = required.filter(({ texts, isIn }) => isIn && texts.every(isPlainText))
  return (stored) => {
    if (needed.length > 0) {
      // Most events are decided without parsing them.
      const body = stored.body.toString().toLowerCase()
      const isThere = ({ texts }: RequiredText) => texts.some((text) => body.includes(text))
      if (!needed.every(isThere)) return false
    }
    return hasTexts(required, stored)
  }
}
