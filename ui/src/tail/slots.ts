/**
 * Gives each key a number. Keys that stay keep theirs, and new keys get those of keys that have
 * gone: a list whose rows come and go uses its parts again. A tab that made new ones for every event
 * would have hundreds of megabytes of old ones before the browser collects them.
 */
export function assignSlots(
  before: ReadonlyMap<string, number>,
  keys: readonly string[],
): ReadonlyMap<string, number> {
  const taken = new Set(keys.map((key) => before.get(key)))
  let next = 0
  const free = (): number => {
    while (taken.has(next)) next++
    return next++
  }
  return new Map(keys.map((key) => [key, before.get(key) ?? free()]))
}
