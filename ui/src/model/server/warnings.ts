/** Parses the `Warning` header, in which the server qualifies an answer. */

/** Matches `299 - "a \\"text\\""`; browsers join several headers with commas. */
const WARNING = /\b\d{3} \S{1,256} "((?:[^"\\]|\\.)*)"/g

/** Returns the texts without duplicates. */
export function warningTexts(header: string): readonly string[] {
  // The server sends UTF-8, and the browser shows each byte as a character.
  const bytes = Uint8Array.from(header, (character) => character.charCodeAt(0))
  const texts = Array.from(new TextDecoder().decode(bytes).matchAll(WARNING), ([, text = '']) =>
    text.replaceAll(/\\(.)/g, '$1'),
  )
  return [...new Set(texts)]
}
