const INDENT = '  '

/**
 * Indents compact JSON for people to read, two spaces a level. Empty objects and lists stay as they
 * are. Scans the text, which must be valid JSON, without parsing it.
 */
export function indentJson(text: string): string {
  let out = ''
  let depth = 0
  let from = 0
  for (let at = 0; at < text.length; at++) {
    const character = text[at]
    if (character === '"') at = stringEnd(text, at)
    else if (character === ':') {
      out += `${text.slice(from, at)}: `
      from = at + 1
    } else if (character === ',') {
      out += `${text.slice(from, at)},${newLine(depth)}`
      from = at + 1
    } else if (character === '{' || character === '[') {
      if (isClosing(text[at + 1])) at++
      else {
        depth++
        out += `${text.slice(from, at + 1)}${newLine(depth)}`
        from = at + 1
      }
    } else if (isClosing(character)) {
      depth--
      out += `${text.slice(from, at)}${newLine(depth)}`
      from = at
    }
  }
  return out + text.slice(from)
}

function isClosing(character: string | undefined): boolean {
  return character === '}' || character === ']'
}

function newLine(depth: number): string {
  return `\n${INDENT.repeat(depth)}`
}

/** Finds the closing quote of the string that opens at `from`. */
function stringEnd(text: string, from: number): number {
  let at = text.indexOf('"', from + 1)
  while (at !== -1 && isEscaped(text, at)) at = text.indexOf('"', at + 1)
  return at === -1 ? text.length : at
}

/** Returns whether an odd number of backslashes precedes the position. */
function isEscaped(text: string, at: number): boolean {
  let first = at
  while (text[first - 1] === '\\') first--
  return (at - first) % 2 === 1
}
