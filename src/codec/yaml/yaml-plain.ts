/**
 * Reads unquoted YAML scalars by the rules of YAML 1.1 as Kubernetes' tools apply them: `yes` and
 * `on` are booleans, 0755 is octal, but a text that looks like a time is a string.
 */

const WORDS: ReadonlyMap<string, null | boolean> = new Map<string, null | boolean>([
  ...spelled(null, ['', '~', 'null', 'Null', 'NULL']),
  ...spelled(true, ['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON']),
  ...spelled(false, ['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF']),
])

const NOT_FINITE = /^(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/
const INTEGER = /^([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(\d+))$/
const FLOAT = /^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/
const TIME = /^\d{4}-\d{1,2}-\d{1,2}(?:$|[Tt ])/
/** `1:30` is a base-60 number in YAML 1.1. We parse it as text, but other parsers may not. */
const BASE_60 = /^[-+]?\d[\d_]*(?::[0-5]?\d)+(?:\.[\d_]*)?$/

/** Longer texts are not parsed as numbers. */
const NUMBER_LENGTH_MAX = 100

/** Returns undefined if the text is a string, and NaN for numbers that JSON cannot represent. */
export function plainValue(text: string): null | boolean | number | undefined {
  const word = WORDS.get(text)
  if (word !== undefined) return word
  if (!mayBeNumber(text)) return undefined
  if (NOT_FINITE.test(text)) return Number.NaN
  return numberValue(text)
}

/** Returns whether every YAML parser reads the unquoted text as this string. */
export function readsAsText(text: string): boolean {
  if (text === '<<' || plainValue(text) !== undefined) return false
  return !mayBeNumber(text) || !(TIME.test(text) || BASE_60.test(text))
}

function spelled<T>(value: T, texts: readonly string[]): (readonly [string, T])[] {
  return texts.map((text) => [text, value] as const)
}

function mayBeNumber(text: string): boolean {
  const code = text.charCodeAt(0)
  const starts = (code >= 0x30 && code <= 0x39) || code === 0x2b || code === 0x2d || code === 0x2e
  return starts && text.length <= NUMBER_LENGTH_MAX
}

function numberValue(text: string): number | undefined {
  const digits = text.startsWith('.') ? text : text.replaceAll('_', '')
  const integer = INTEGER.exec(digits)
  if (integer !== null) {
    const [, sign, hexadecimal, binary, octal, decimal] = integer
    return (sign === '-' ? -1 : 1) * magnitude(hexadecimal, binary, octal, decimal)
  }
  return FLOAT.test(digits) ? Number(digits) : undefined
}

function magnitude(hexadecimal = '', binary = '', octal = '', decimal = ''): number {
  if (hexadecimal !== '') return Number.parseInt(hexadecimal, 16)
  if (binary !== '') return Number.parseInt(binary, 2)
  return octal === '' ? Number(decimal) : Number.parseInt(octal, 8)
}
