import { StatusError } from '../api/status.ts'

/** All texts together; if they are longer, each is cut short and what still finds no room left out. */
const TOTAL_MAX = 4096
const SHORT_MAX = 256

/**
 * A `Warning` header for each text, in one line as HTTP allows; undefined when there is nothing to
 * warn of. Headers are no place for essays: many clients take 16 KB of them and no more.
 */
export function warningHeader(texts: readonly string[]): string | undefined {
  const once = [...new Set(texts)]
  if (once.length === 0) return undefined
  const total = once.reduce((sum, text) => sum + text.length, 0)
  const shown = total <= TOTAL_MAX ? once : shortened(once)
  return shown.map((text) => `299 - "${escaped(text)}"`).join(', ')
}

/** Does the work; the refusal, if it comes to one, tells what the answer would have told. */
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
  let room = TOTAL_MAX
  for (const text of texts) {
    if (room <= 0) break
    // Not between the two halves of a letter.
    const short = text.slice(0, SHORT_MAX).replace(/[\ud800-\udbff]$/, '')
    shown.push(short)
    room -= short.length
  }
  return shown
}

/** Quotes and backslashes as in any quoted string; other letters as the bytes of their UTF-8. */
function escaped(text: string): string {
  const printable = text.toWellFormed().replaceAll(/\p{Cc}/gu, ' ')
  return Buffer.from(printable.replaceAll(/["\\]/g, '\\$&')).toString('latin1')
}
