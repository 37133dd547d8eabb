import type { Request } from '../../http/exchange.ts'
import { isSecretName } from '../../lib/log-fields.ts'
import { REDACTED, withoutTokens } from '../../lib/token-scrub.ts'

/** Names that are secrets in a query, if not in a log. */
const SECRET_PARAMETERS = new Set(['auth', 'code', 'sig', 'signature', 'assertion'])
/** As long as the longest path that is served. */
export const URI_LENGTH_MAX: number = 8 * 1024

/**
 * What was asked for, fit to be kept: credentials do not belong into a query, but some clients put
 * them there. The value of a parameter that sounds like a secret is left out, and so is whatever
 * looks like a token, wherever it is. No more is looked at than is kept.
 */
export function auditUri(
  { path, query }: Pick<Request, 'path' | 'query'>,
  lengthMax: number = URI_LENGTH_MAX,
): string {
  const shown = encodeURI(cleaned(path, lengthMax))
  if (query.size === 0) return cut(shown, lengthMax)
  const pairs: string[] = []
  let { length } = shown
  for (const [name, value] of query) {
    const pair = `${encodeURIComponent(cleaned(name, lengthMax))}=${encodeURIComponent(shownValue(name, value, lengthMax))}`
    pairs.push(pair)
    length += pair.length
    if (length > lengthMax) break
  }
  return cut(`${shown}?${pairs.join('&')}`, lengthMax)
}

function shownValue(name: string, value: string, lengthMax: number): string {
  if (isSecretName(name) || SECRET_PARAMETERS.has(name.toLowerCase())) return REDACTED
  // Some have always thought that a semicolon separates parameters.
  if (!value.includes(';')) return cleaned(value, lengthMax)
  const parts = value.split(';').map((part) => shownPart(part, lengthMax))
  return parts.join(';')
}

function shownPart(part: string, lengthMax: number): string {
  const equals = part.indexOf('=')
  const name = part.slice(0, equals)
  if (equals === -1) return cleaned(part, lengthMax)
  if (isSecretName(name)) return `${name.toWellFormed()}=${REDACTED}`
  return cleaned(part, lengthMax)
}

/** A cut may fall into the middle of a character. */
function cleaned(text: string, lengthMax: number): string {
  return withoutTokens(text, lengthMax).toWellFormed()
}

/** The mark is shown as it is, for those who look for it. */
function cut(uri: string, lengthMax: number): string {
  const shown = uri.replaceAll(encodeURIComponent(REDACTED), REDACTED)
  return shown.length > lengthMax ? `${shown.slice(0, lengthMax)}...TRUNCATED` : shown
}
