/**
 * Texts of events as they are shown. Whoever may write an event chooses its texts, and the person on
 * call trusts what is on the screen. So every character that has an effect instead of a shape is
 * written out:
 *
 * - Controls: the escapes that colour a terminal mean nothing here, and vanish without a trace.
 * - Direction marks, overrides and isolates: they reorder what is around them, so that
 *   `txt.exe` reads as something else.
 * - Invisible and blank characters: with one of them, two names that differ look the same.
 * - Piles of combining marks, which break lines and cover others.
 *
 * Letters that are written from right to left stay as they are; `PlainText` keeps them from reordering
 * their neighbours.
 */

const JOINED = '(?![\\u0000-\\u007f])[\\p{L}\\p{M}\\p{S}]'

/** Tibetan and Hebrew text has up to this many marks on one letter. */
const MARKS_MAX = 8

const INVISIBLE = new RegExp(
  [
    // Control characters except tab and line feed, which are white space.
    '[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f]',
    // Direction marks, embeddings, overrides and isolates.
    '[\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u206f]',
    // Zero-width characters, blanks in place of letters, Unicode line separators, and tags.
    '[\\u00ad\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e\\u200b\\u2028\\u2029\\u2060-\\u2065\\u3164\\ufeff\\uffa0\\ufff9-\\ufffb]',
    '[\\u{e0000}-\\u{e0fff}]',
    // Joiners, except between non-ASCII characters: emoji and some scripts need them.
    `(?<!${JOINED})[\\u200c\\u200d]|[\\u200c\\u200d](?!${JOINED})`,
    // More combining marks than any script uses: they would cover the lines above and below.
    `(?<=\\p{M}{${MARKS_MAX}})\\p{M}`,
    // Lone surrogates.
    '[\\ud800-\\udfff]',
  ].join('|'),
  'gu',
)

const PICTURES = 0x2400
const DELETE = 0x7f

/** Returns the text with all invisible characters written out. */
export function visible(text: string): string {
  return text.replaceAll('\r\n', '\n').replaceAll(INVISIBLE, written)
}

/** `␛` for control characters that have a picture, `[U+202E]` for others. */
function written(character: string): string {
  const code = character.codePointAt(0) ?? 0
  if (code < 0x20) return String.fromCharCode(PICTURES + code)
  if (code === DELETE) return '\u2421'
  return `[U+${code.toString(16).toUpperCase().padStart(4, '0')}]`
}

/**
 * Wraps a value for texts without markup, such as tooltips and labels, so that it cannot reorder
 * its surroundings.
 */
export function isolated(text: string): string {
  return `\u2068${visible(text)}\u2069`
}
