/** Compares what a page shows with what was printed, without what differs between any two runs. */

const ANY_LINES = '...'

const RULES: readonly (readonly [RegExp, string])[] = [
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z/g, 'TIME'],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UID'],
  [/\b[0-9a-f]{16,}\b/g, 'HEX'],
  [/(?<![\w.-])(?:\d+[dhms]){1,2}(?![\w-])/g, 'AGE'],
  [/\b\d+(?:\.\d+)?\/min\b/g, 'RATE'],
  [/(\d|localhost|\]):\d{4,5}\b/g, '$1:PORT'],
  [/\b\d+(?:\.\d+)?[KM]i\b/g, 'SIZE'],
]

/** Whether the lines of a page, where three dots stand for any lines, are what was printed. */
export function isShown(expected: string, printed: string, home: string): boolean {
  const wanted = linesOf(expected)
  const lines = linesOf(printed.replaceAll(home, '/home/you'))
  return matches(wanted, lines)
}

export function anywhere(expected: string): string {
  return `${ANY_LINES}\n${expected}\n${ANY_LINES}`
}

function matches(wanted: readonly string[], lines: readonly string[]): boolean {
  const [first, ...rest] = wanted
  if (first === undefined) return lines.length === 0
  if (first !== ANY_LINES) return isLike(first, lines[0]) && matches(rest, lines.slice(1))
  return [...lines.keys(), lines.length].some((skipped) => matches(rest, lines.slice(skipped)))
}

/** Inside a line, three dots stand for any text. */
function isLike(wanted: string, line: string | undefined): boolean {
  const parts = wanted.split(ANY_LINES).map((part) => part.replaceAll(/[^\w\s]/g, '\\$&'))
  return line !== undefined && new RegExp(`^${parts.join('.*')}$`).test(line)
}

function linesOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => RULES.reduce((each, [pattern, name]) => each.replace(pattern, name), line))
    .map((line) => line.replaceAll(/\s+/g, ' ').trim())
    .filter((line) => line !== '')
}
