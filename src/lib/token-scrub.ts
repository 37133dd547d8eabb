/** Takes out of texts what looks like a token, in time that grows no faster than they do. */

/** Stands where a secret was. */
export const REDACTED = '[redacted]'

const BEARER = /\b(bearer)\s+\S+/gi
/** Whatever a signed token may be made of, as far as it goes: nothing to try again, nowhere to go back. */
const RUN = /[\w.-]+/g
/** As JSON begins in base64. */
const JSON_START = 'eyJ'
/** The first two parts of a signed token have at least so many characters after that, and in all. */
const PART_LENGTH_MIN = 8

/**
 * A text without what looks like a token, whatever its name, and no longer than asked for but for
 * the marks. What a cut leaves of a token goes too.
 */
export function withoutTokens(text: string, lengthMax: number = Number.POSITIVE_INFINITY): string {
  const isCut = text.length > lengthMax
  const kept = isCut ? text.slice(0, lengthMax) : text
  // Most have neither, and one look costs less than two replacements.
  if (!/eyJ|bearer/i.test(kept)) return kept
  return kept
    .replace(RUN, (run, at: number) =>
      run.includes(JSON_START) ? withoutSigned(run, isCut && at + run.length === kept.length) : run,
    )
    .replace(BEARER, `$1 ${REDACTED}`)
}

/** Three parts with dots between them, of which the first begins as JSON does. */
function withoutSigned(run: string, isCut: boolean): string {
  const parts = run.split('.')
  const shown: string[] = []
  for (let index = 0; index < parts.length; index += 1) {
    const part = parts[index] ?? ''
    const at = part.indexOf(JSON_START)
    const isStart = at !== -1 && part.length - at - JSON_START.length >= PART_LENGTH_MIN
    const isSigned = index + 2 < parts.length && (parts[index + 1] ?? '').length >= PART_LENGTH_MIN
    if (isStart && (isSigned || (isCut && index + 2 >= parts.length))) {
      shown.push(part.slice(0, at) + REDACTED)
      index += 2
    } else shown.push(part)
  }
  return shown.join('.')
}
