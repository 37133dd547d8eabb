/** Redacts everything in a text that looks like a token, in linear time. */

export const REDACTED = '[redacted]'

const BEARER = /\b(bearer)\s+\S+/gi
/** A run of the characters that a signed token may contain. The pattern cannot backtrack. */
const RUN = /[\w.-]+/g
/** The beginning of a JSON object in base64. */
const JSON_START = 'eyJ'
/** Minimum length of the first part after `eyJ`, and of the whole second part. */
const PART_LENGTH_MIN = 8

/**
 * Truncates the text to `lengthMax` characters (the redaction marks may make it longer) and redacts
 * everything that looks like a token, including a truncated token at the end.
 */
export function withoutTokens(text: string, lengthMax: number = Number.POSITIVE_INFINITY): string {
  const isCut = text.length > lengthMax
  const start = isCut ? text.slice(0, lengthMax) : text
  // Fast path: most texts have neither, and one test costs less than two replacements.
  if (!/eyJ|bearer/i.test(start)) return start
  return start
    .replace(RUN, (run, at: number) =>
      run.includes(JSON_START) ? redactSigned(run, isCut && at + run.length === start.length) : run,
    )
    .replace(BEARER, `$1 ${REDACTED}`)
}

/** A signed token has three parts with dots between them, and the first is JSON in base64. */
function redactSigned(run: string, isCut: boolean): string {
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
