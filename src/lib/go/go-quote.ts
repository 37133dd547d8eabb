/**
 * Quotes a string as Go's `%q` does, for messages that existing clients parse: double quotes, the short
 * escapes, and `\xNN` and `\uNNNN` for unprintable characters.
 */
export function goQuote(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`
  let quoted = '"'
  for (const character of text) quoted += SHORT.get(character) ?? escapeUnprintable(character)
  return `${quoted}"`
}

/** Fast path: nearly all names have no character to escape. */
const PLAIN = /^[ !#-[\]-~]*$/

const SHORT: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
])

function escapeUnprintable(character: string): string {
  if (character === ' ' || /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(character)) return character
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20 || code === 0x7f) return `\\x${code.toString(16).padStart(2, '0')}`
  if (code >= 0xd800 && code <= 0xdfff) return '\\ufffd'
  if (code <= 0xffff) return `\\u${code.toString(16).padStart(4, '0')}`
  return `\\U${code.toString(16).padStart(8, '0')}`
}
