/** All texts together, before each is cut short. */
const TOTAL_MAX = 4096
const SHORT_MAX = 256

/**
 * A `Warning` header for each text, in one line as HTTP allows; undefined when there is nothing to
 * warn of. Past some length every text is cut: headers are no place for essays.
 */
export function warningHeader(texts: readonly string[]): string | undefined {
  const once = [...new Set(texts)]
  if (once.length === 0) return undefined
  const total = once.reduce((sum, text) => sum + text.length, 0)
  const shown = total <= TOTAL_MAX ? once : once.map((text) => text.slice(0, SHORT_MAX))
  return shown.map((text) => `299 - "${escaped(text)}"`).join(', ')
}

/** Quotes and backslashes as in any quoted string; other letters as the bytes of their UTF-8. */
function escaped(text: string): string {
  const printable = text.toWellFormed().replaceAll(/\p{Cc}/gu, ' ')
  return Buffer.from(printable.replaceAll(/["\\]/g, '\\$&')).toString('latin1')
}
