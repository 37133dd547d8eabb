/** The header `Warning`, in which the server says what is odd about an answer. */

/** `299 - "a \\"text\\""`; a browser joins several headers with commas. */
const WARNING = /\b\d{3} \S{1,256} "((?:[^"\\]|\\.)*)"/g

/** Its texts, each once. */
export function warningTexts(header: string): readonly string[] {
  // The server sends UTF-8, and the browser shows each byte as a character.
  const bytes = Uint8Array.from(header, (character) => character.charCodeAt(0))
  const texts = Array.from(new TextDecoder().decode(bytes).matchAll(WARNING), ([, text = '']) =>
    text.replaceAll(/\\(.)/g, '$1'),
  )
  return [...new Set(texts)]
}
