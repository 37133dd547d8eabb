/**
 * Binary search in a text of sorted entries, with a separator before each entry and after the last.
 * The key of an entry is its beginning, up to `keyEnd`, which may be the separator. Returns the
 * offset of that `keyEnd`, or undefined when no entry has the key.
 */
export function keyEndIn(
  text: string,
  key: string,
  { separator, keyEnd }: { readonly separator: string; readonly keyEnd: string },
): number | undefined {
  // The entry, if present, is between these two separators.
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

/** Compares by code units, the order in which JavaScript sorts strings. */
function compare(value: string, text: string, from: number, to: number): number {
  const length = Math.min(value.length, to - from)
  for (let at = 0; at < length; at++) {
    const difference = value.charCodeAt(at) - text.charCodeAt(from + at)
    if (difference !== 0) return difference
  }
  return value.length - (to - from)
}
