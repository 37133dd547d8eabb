import { readsAsText } from './yaml-plain.ts'

/**
 * Encodes strings as YAML: unquoted where a parser reads the same string, otherwise in quotes, or
 * as a block if the string has several lines. Long lines are folded at a space, where a parser
 * joins them again.
 */

/** A line is folded at the first space after this column. */
const WIDTH = 80

/** The column where a text begins, and the indentation of its other lines. */
export interface Position {
  readonly column: number
  readonly indent: number
}

export function yamlText(text: string, position: Position): string {
  if (text.includes('\n'))
    return canBeBlock(text) ? block(text, position.indent) : doubleQuoted(text, position)
  if (!readsAsText(text) || !isPrintable(text)) return doubleQuoted(text, position)
  if (canBeUnquoted(text)) return folded(text, position)
  return `'${folded(text.replaceAll("'", "''"), { ...position, column: position.column + 1 })}'`
}

/** Encodes a mapping key on one line, whatever its length. */
export function yamlName(name: string): string {
  const unfolded = { column: Number.NEGATIVE_INFINITY, indent: 0 }
  return name.includes('\n') ? doubleQuoted(name, unfolded) : yamlText(name, unfolded)
}

const FIRST_MARKS: ReadonlySet<string> = new Set([...'#,[]{}&*!|>\'"%@`'])

/** Returns whether no character has a special meaning in YAML. */
function canBeUnquoted(text: string): boolean {
  const first = text.charAt(0)
  if (FIRST_MARKS.has(first) || text.startsWith('---') || text.startsWith('...')) return false
  if (first === ' ' || text.endsWith(' ') || text.endsWith(':')) return false
  if ((first === '-' || first === '?') && (text.length === 1 || text[1] === ' ')) return false
  return !text.includes(': ') && !text.includes(' #')
}

function isPrintable(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    if (!isPrintableUnit(text.charCodeAt(at))) return false
  }
  return true
}

/** Characters above U+FFFF are escaped, as in Go's YAML library. */
function isPrintableUnit(unit: number): boolean {
  if (unit < 0xa0) return unit >= 0x20 && unit <= 0x7e
  if (unit === 0x2028 || unit === 0x2029 || unit === 0xfeff) return false
  return unit < 0xd800 || (unit > 0xdfff && unit < 0xfffe)
}

/** A block cannot represent a space at the end of a line. */
function canBeBlock(text: string): boolean {
  return !text.includes(' \n') && !text.endsWith(' ') && isPrintable(text.replaceAll('\n', ''))
}

function block(text: string, indent: number): string {
  const startsWithSpace = text.startsWith(' ') || text.startsWith('\n')
  const lines = text.split('\n')
  if (text.endsWith('\n')) lines.pop()
  const margin = ' '.repeat(indent)
  const indented = lines.map((line) => (line === '' ? '' : margin + line))
  return `|${startsWithSpace ? '2' : ''}${chomping(text)}\n${indented.join('\n')}`
}

/** The chomping indicator, which says how many of the final line breaks a block has. */
function chomping(text: string): string {
  if (!text.endsWith('\n')) return '-'
  return text === '\n' || text.endsWith('\n\n') ? '+' : ''
}

/** Breaks lines at single spaces, which a parser restores. */
function folded(text: string, { column, indent }: Position): string {
  if (column + text.length <= WIDTH) return text
  let out = ''
  let from = 0
  let lineStart = -column
  for (let at = text.indexOf(' '); at !== -1; at = text.indexOf(' ', at + 1)) {
    const alone = text[at - 1] !== ' ' && text[at + 1] !== ' ' && at > 0 && at < text.length - 1
    if (alone && at - lineStart > WIDTH) {
      out += `${text.slice(from, at)}\n${' '.repeat(indent)}`
      from = at + 1
      lineStart = from - indent
    }
  }
  return out + text.slice(from)
}

/** Escapes contain no space, so folding the escaped text does not break one. */
function doubleQuoted(text: string, position: Position): string {
  let escaped = ''
  for (const character of text.toWellFormed()) escaped += escapedCharacter(character)
  return `"${folded(escaped, { ...position, column: position.column + 1 })}"`
}

const SHORT: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\0', '\\0'],
  ['\x07', '\\a'],
  ['\b', '\\b'],
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\v', '\\v'],
  ['\f', '\\f'],
  ['\r', '\\r'],
  ['\x1b', '\\e'],
  ['\x85', '\\N'],
  ['\u2028', '\\L'],
  ['\u2029', '\\P'],
])

function escapedCharacter(character: string): string {
  const short = SHORT.get(character)
  if (short !== undefined) return short
  const code = character.codePointAt(0) ?? 0
  if (code <= 0xffff && isPrintableUnit(code)) return character
  const digits = code.toString(16).toUpperCase()
  if (code <= 0xff) return `\\x${digits.padStart(2, '0')}`
  return code <= 0xffff ? `\\u${digits.padStart(4, '0')}` : `\\U${digits.padStart(8, '0')}`
}
