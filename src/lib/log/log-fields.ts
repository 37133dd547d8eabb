/**
 * Sanitises values for a log line. Many of them come from clients, so nothing is logged unchecked:
 * secrets are redacted, long values are truncated, nesting is limited, and unreadable values are
 * replaced by a note. The two log formats do the escaping.
 */
import { REDACTED, withoutTokens } from './token-scrub.ts'

const textLengthMax = 2048
// Limits the whole line, so that many fields cannot add up to an endless one.
const lineLengthMax = 16 * 1024
const nameLengthMax = 128
const itemsMax = 32
const depthMax = 4
const causesMax = 5

type Plain = string | number | boolean | null | Plain[] | { [key: string]: Plain }

export interface LineBudget {
  /** Characters that still fit on the line. */
  left: number
}

export function newLineBudget(): LineBudget {
  return { left: lineLengthMax }
}

/** Sanitised fields; undefined ones are omitted. Never throws. */
export function plainFields(
  fields: Readonly<Record<string, unknown>>,
  budget: LineBudget,
): { [key: string]: Plain } {
  try {
    return plainObject(fields, budget, 0)
  } catch {
    // A getter or a proxy threw. A line without fields is better than no line.
    return { fields: '[unreadable]' }
  }
}

/** The text with recognisable secrets redacted, truncated to what fits on the line. */
export function plainText(text: string, budget: LineBudget): string {
  const lengthMax = Math.max(0, Math.min(textLengthMax, budget.left))
  // Redacted before it is cut, so that a cut cannot leave half a secret unrecognised.
  const clean = scrub(withoutTokens(text, 2 * textLengthMax))
  const cut =
    clean.length > lengthMax ? `${clean.slice(0, lengthMax)}…[${text.length} characters]` : clean
  budget.left -= cut.length
  return cut
}

/** The messages of an error and its causes, outermost first; repeated messages are omitted. */
export function errorText(error: unknown): string {
  let text = ''
  let current = error
  for (let depth = 0; depth < causesMax && current !== undefined && current !== null; depth++) {
    const message = current instanceof Error ? current.message || current.name : String(current)
    if (depth === 0) text = message
    else if (!text.includes(message)) text += `: ${message}`
    current = current instanceof Error ? current.cause : undefined
  }
  return text
}

const secretWords = new Set(
  (
    'authorization cookie cookies token tokens jwt bearer password passwords passwd passphrase ' +
    'secret secrets credential credentials apikey privatekey'
  ).split(' '),
)
// Last words of names that are not secrets: where a secret is stored, or how many there are.
const harmlessEndings = new Set('file path dir name count id ms seconds'.split(' '))
// A key with one of these words before it is an address or public, not a secret.
const publicKeys = new Set('etcd event object public cache sort'.split(' '))

/** Whether a field of this name must not be printed. */
export function isSecretName(name: string): boolean {
  // Fast path: most names contain none of these and need not be split into words.
  if (!/auth|cookie|token|jwt|bearer|pass|secret|credential|key/i.test(name)) return false
  const words = name
    .slice(-nameLengthMax)
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .replace(/([a-z0-9])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
  const last = words.at(-1) ?? ''
  if (harmlessEndings.has(last)) return false
  if (words.some((word) => secretWords.has(word))) return true
  // `keys` alone is a count of keys or a list of their names.
  const isKey = last === 'key' || (last === 'keys' && words.length > 1)
  return isKey && !publicKeys.has(words.at(-2) ?? '')
}

function scrub(text: string): string {
  // Fast path: most texts contain neither, and one test costs less than two replacements.
  if (!/@|PRIVATE KEY/i.test(text)) return text
  return text
    .replace(/:\/\/[^\s/@]+@/g, `://${REDACTED}@`)
    .replace(/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(-----END|$)/g, REDACTED)
}

function plainObject(fields: object, budget: LineBudget, depth: number): { [key: string]: Plain } {
  const plain: { [key: string]: Plain } = {}
  const entries = Object.entries(fields)
  for (const [name, value] of entries.slice(0, itemsMax)) {
    if (value === undefined || typeof value === 'function') continue
    if (budget.left <= 0) break
    // The only name that would not become an own property.
    const key = name === '__proto__' ? '_proto_' : name.slice(0, nameLengthMax)
    budget.left -= key.length
    plain[key] = isSecretName(name) ? REDACTED : plainValue(value, budget, depth)
  }
  if (entries.length > itemsMax) plain['more'] = entries.length - itemsMax
  return plain
}

function plainValue(value: unknown, budget: LineBudget, depth: number): Plain {
  switch (typeof value) {
    case 'string':
      return plainText(value, budget)
    case 'number':
      return Number.isFinite(value) ? value : String(value)
    case 'boolean':
      return value
    case 'object':
      return value === null ? null : plainComposite(value, budget, depth)
    default:
      return plainText(String(value), budget)
  }
}

function plainComposite(value: object, budget: LineBudget, depth: number): Plain {
  if (value instanceof Error) return plainText(errorText(value), budget)
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'never' : value.toISOString()
  if (value instanceof URL) return plainText(value.href, budget)
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth >= depthMax) return '[nested too deeply]'
  if (value instanceof Map) return plainObject(Object.fromEntries(value), budget, depth + 1)
  if (value instanceof Set) return plainArray([...value], budget, depth)
  if (Array.isArray(value)) return plainArray(value, budget, depth)
  return plainObject(value, budget, depth + 1)
}

function plainArray(items: readonly unknown[], budget: LineBudget, depth: number): Plain {
  const plain: Plain[] = []
  for (const item of items.slice(0, itemsMax)) {
    if (budget.left <= 0) break
    budget.left -= 1
    plain.push(item === undefined ? null : plainValue(item, budget, depth + 1))
  }
  if (items.length > plain.length) plain.push(`[${items.length - plain.length} more]`)
  return plain
}
