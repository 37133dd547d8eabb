import type { Request } from '../../http/exchange.ts'
import { isSecretName } from '../../lib/log/log-fields.ts'
import { REDACTED, withoutTokens } from '../../lib/log/token-scrub.ts'

/** Names of secret parameters, in addition to the names that are secret in log fields. */
const SECRET_PARAMETERS = new Set(['auth', 'code', 'sig', 'signature', 'assertion'])
/** The length of the longest path that is served. */
export const URI_LENGTH_MAX: number = 8 * 1024

/**
 * The request URI without secrets: credentials do not belong in a query, but some clients put them
 * there. The values of parameters with names of secrets are redacted, and so is everything that
 * looks like a token. Text beyond the limit is not scanned.
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
  // Some clients separate parameters with a semicolon.
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

/** Well-formed, since truncation may split a surrogate pair. */
function cleaned(text: string, lengthMax: number): string {
  return withoutTokens(text, lengthMax).toWellFormed()
}

/** Leaves the redaction mark unencoded, so that it can be searched for. */
function cut(uri: string, lengthMax: number): string {
  const shown = uri.replaceAll(encodeURIComponent(REDACTED), REDACTED)
  return shown.length > lengthMax ? `${shown.slice(0, lengthMax)}...TRUNCATED` : shown
}
