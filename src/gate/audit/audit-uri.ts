import type { Request } from '../../http/exchange.ts'
import { isSecretName } from '../../lib/log-fields.ts'
import { REDACTED, withoutTokens } from '../../lib/token-scrub.ts'

/** Names that are secrets in a query, if not in a log. */
const SECRET_PARAMETERS = new Set(['auth', 'code', 'sig', 'signature', 'assertion'])
const URI_LENGTH_MAX = 8 * 1024

/**
 * What was asked for, fit to be kept: credentials do not belong into a query, but some clients put
 * them there. The value of a parameter that sounds like a secret is left out, and so is whatever
 * looks like a token, wherever it is. No more is looked at than is kept.
 */
export function auditUri({ path, query }: Pick<Request, 'path' | 'query'>): string {
  const shown = encodeURI(cleaned(path))
  if (query.size === 0) return cut(shown)
  const pairs: string[] = []
  let { length } = shown
  for (const [name, value] of query) {
    const pair = `${encodeURIComponent(cleaned(name))}=${encodeURIComponent(shownValue(name, value))}`
    pairs.push(pair)
    length += pair.length
    if (length > URI_LENGTH_MAX) break
  }
  return cut(`${shown}?${pairs.join('&')}`)
}

function shownValue(name: string, value: string): string {
  if (isSecretName(name) || SECRET_PARAMETERS.has(name.toLowerCase())) return REDACTED
  // Some have always thought that a semicolon separates parameters.
  return value.includes(';') ? value.split(';').map(shownPart).join(';') : cleaned(value)
}

function shownPart(part: string): string {
  const equals = part.indexOf('=')
  const name = part.slice(0, equals)
  if (equals === -1) return cleaned(part)
  if (isSecretName(name)) return `${name.toWellFormed()}=${REDACTED}`
  return cleaned(part)
}

/** A cut may fall into the middle of a character. */
function cleaned(text: string): string {
  return withoutTokens(text, URI_LENGTH_MAX).toWellFormed()
}

/** The mark is shown as it is, for those who look for it. */
function cut(uri: string): string {
  const shown = uri.replaceAll(encodeURIComponent(REDACTED), REDACTED)
  return shown.length > URI_LENGTH_MAX ? `${shown.slice(0, URI_LENGTH_MAX)}...TRUNCATED` : shown
}
