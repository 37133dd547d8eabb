import { StatusError } from '../../api/status.ts'

/** The total length of all texts. Beyond it, texts are truncated and the last ones dropped. */
const TOTAL_MAX = 4096
const SHORT_MAX = 256

/**
 * Returns the `Warning` header with all texts, or undefined if there are none. Its length is
 * limited, since many clients accept at most 16 KB of headers.
 */
export function warningHeader(texts: readonly string[]): string | undefined {
  if (texts.length === 0) return undefined
  const once = [...new Set(texts)]
  const total = once.reduce((sum, text) => sum + text.length, 0)
  const shown = total <= TOTAL_MAX ? once : shortened(once)
  return shown.map((text) => `299 - "${escaped(text)}"`).join(', ')
}

/** Runs the work, and adds the warnings to a StatusError that it throws. */
export async function withWarnings<T>(
  warnings: () => readonly string[],
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const texts = warnings()
    throw error instanceof StatusError && texts.length > 0 ? error.withWarnings(texts) : error
  }
}

function shortened(texts: readonly string[]): readonly string[] {
  const shown: string[] = []
  let left = TOTAL_MAX
  for (const text of texts) {
    if (left <= 0) break
    // Does not split a surrogate pair.
    const short = text.slice(0, SHORT_MAX).replace(/[\ud800-\udbff]$/, '')
    shown.push(short)
    left -= short.length
  }
  return shown
}

/** Escapes quotes and backslashes, and encodes other characters as UTF-8 bytes. */
function escaped(text: string): string {
  const printable = text.toWellFormed().replaceAll(/\p{Cc}/gu, ' ')
  return Buffer.from(printable.replaceAll(/["\\]/g, '\\$&')).toString('latin1')
}
