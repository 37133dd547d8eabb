import type { FieldRequirement } from '../../api/selectors/field-selector.ts'
import { badRequest } from '../../api/status.ts'
import type { StoredEvent } from '../../storage/storage.ts'

/** Each is searched for in every event that the other terms leave, and in each change of a watch. */
const textsMax = 4

/** JSON has no escapes for these characters: a note that has them has them in the body. */
const PLAIN = /^[\w .:/()[\]{}@#%*+;|~^`$-]*$/

/** Whether the note or the reason contains the texts, without case; all `text` terms at once. */
export function textTest(terms: readonly FieldRequirement[]): (stored: StoredEvent) => boolean {
  if (terms.length > textsMax) throw badRequest(`a field selector has at most ${textsMax} texts`)
  const wanted = terms.map(({ operator, value }) => ({
    text: value.toLowerCase(),
    isIn: operator === '=',
  }))
  const needed = wanted.filter(({ text, isIn }) => isIn && PLAIN.test(text))
  return (stored) => {
    if (needed.length > 0) {
      // Most events are decided without parsing them.
      const body = stored.body.toString().toLowerCase()
      if (!needed.every(({ text }) => body.includes(text))) return false
    }
    const note = stored.fields.note.toLowerCase()
    const reason = stored.fields.reason.toLowerCase()
    return wanted.every(({ text, isIn }) => (note.includes(text) || reason.includes(text)) === isIn)
  }
}
