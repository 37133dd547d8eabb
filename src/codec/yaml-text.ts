import { readsAsText } from './yaml-plain.ts'

/**
 * Strings as YAML writes them: bare where that reads as the same string, else in quotes, as a block
 * if they have lines. Long ones are folded at a space, where reading joins them again.
 */

/** A line is folded at the first space past this column. */
const WIDTH = 80

/** Where a text begins, and how far its further lines are moved in. */
export interface Spot {
  readonly column: number
  readonly indent: number
}

/** A value. */
export function yamlText(text: string, spot: Spot): string {
  if (text.includes('\n')) return canBeBlock(text) ? block(text, spot.indent) : inDouble(text, spot)
  if (!readsAsText(text) || !isPrintable(text)) return inDouble(text, spot)
  if (canBeBare(text)) return folded(text, spot)
  return `'${folded(text.replaceAll("'", "''"), { ...spot, column: spot.column + 1 })}'`
}

/** A name: on one line, whatever its length. */
export function yamlName(name: string): string {
  const nowhere = { column: Number.NEGATIVE_INFINITY, indent: 0 }
  return name.includes('\n') ? inDouble(name, nowhere) : yamlText(name, nowhere)
}

const FIRST_MARKS: ReadonlySet<string> = new Set([...'#,[]{}&*!|>\'"%@`'])

/** Whether no character means something to a reader. */
function canBeBare(text: string): boolean {
  const first = text.charAt(0)
  if (FIRST_MARKS.has(first) || text.startsWith('---') || text.startsWith('...')) return false
  if (first === ' ' || text.endsWith(' ') || text.endsWith(':')) return false
  if ((first === '-' || first === '?') && (text.length === 1 || text[1] === ' ')) return false
  return !text.includes(': ') && !text.includes(' #')
}

/** Whether the text has only characters that are shown as they are. */
function isPrintable(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    if (!isPrintableUnit(text.charCodeAt(at))) return false
  }
  return true
}

/** Characters beyond U+FFFF are escaped, which is how Go's YAML writes them. */
function isPrintableUnit(unit: number): boolean {
  if (unit < 0xa0) return unit >= 0x20 && unit <= 0x7e
  if (unit === 0x2028 || unit === 0x2029 || unit === 0xfeff) return false
  return unit < 0xd800 || (unit > 0xdfff && unit < 0xfffe)
}

/** A block cannot hold a space before the end of a line. */
function canBeBlock(text: string): boolean {
  return !text.includes(' \n') && !text.endsWith(' ') && isPrintable(text.replaceAll('\n', ''))
}

function block(text: string, indent: number): string {
  const startsWide = text.startsWith(' ') || text.startsWith('\n')
  const lines = text.split('\n')
  if (text.endsWith('\n')) lines.pop()
  const margin = ' '.repeat(indent)
  const shown = lines.map((line) => (line === '' ? '' : margin + line))
  return `|${startsWide ? '2' : ''}${chomping(text)}\n${shown.join('\n')}`
}

/** How many of the line breaks at its end a block keeps. */
function chomping(text: string): string {
  if (!text.endsWith('\n')) return '-'
  return text === '\n' || text.endsWith('\n\n') ? '+' : ''
}

/** Breaks lines at single spaces; reading puts the space back. */
function folded(text: string, { column, indent }: Spot): string {
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

/** Escapes hold no space, so folding what is escaped already breaks none. */
function inDouble(text: string, spot: Spot): string {
  let escaped = ''
  for (const character of text.toWellFormed()) escaped += escapedCharacter(character)
  return `"${folded(escaped, { ...spot, column: spot.column + 1 })}"`
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
