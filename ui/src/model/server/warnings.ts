/** Parses the `Warning` header, in which the server qualifies an answer. */

import { timeOf } from '../times.ts'

/** Matches `299 - "a \\"text\\""`; browsers join several headers with commas. */
const WARNING = /\b\d{3} \S{1,256} "((?:[^"\\]|\\.)*)"/g

/** Time ran out: there may be more events from before the time. */
const SEARCHED = /^history was searched only up to (\S+)/

/** How far back history was searched, if the text says so. */
export function searchedBackTo(text: string): number | undefined {
  return timeOf(SEARCHED.exec(text)?.[1])
}

/** Returns the texts without duplicates. */
export function warningTexts(header: string): readonly string[] {
  // The server sends UTF-8, and the browser shows each byte as a character.
  const bytes = Uint8Array.from(header, (character) => character.charCodeAt(0))
  const texts = Array.from(new TextDecoder().decode(bytes).matchAll(WARNING), ([, text = '']) =>
    text.replaceAll(/\\(.)/g, '$1'),
  )
  return [...new Set(texts)]
}
