/**
 * Finds an entry in a text of sorted entries, with a separator before each and after the last, in some
 * ten comparisons. An entry is found by what it begins with, up to `keyEnd`, which may be the separator.
 * Answers where that end is; undefined when there is no such entry.
 */
export function keyEndIn(
  text: string,
  key: string,
  { separator, keyEnd }: { readonly separator: string; readonly keyEnd: string },
): number | undefined {
  // Separators between which it must be.
  let low = 0
  let high = text.length - 1
  while (low < high) {
    const start = text.lastIndexOf(separator, (low + high) >>> 1)
    const end = text.indexOf(keyEnd, start + 1)
    const order = compare(key, text, start + 1, end)
    if (order === 0) return end
    if (order < 0) high = start
    else low = text.indexOf(separator, end)
  }
  return undefined
}

/** As strings are sorted: by their code units. */
function compare(value: string, text: string, from: number, to: number): number {
  const length = Math.min(value.length, to - from)
  for (let at = 0; at < length; at++) {
    const difference = value.charCodeAt(at) - text.charCodeAt(from + at)
    if (difference !== 0) return difference
  }
  return value.length - (to - from)
}
