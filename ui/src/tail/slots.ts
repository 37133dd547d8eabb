/**
 * Assigns a number to each key. Keys that remain keep their number, and new keys reuse those of
 * removed keys, so that a list reuses its components. A tab that created new ones for every event
 * would accumulate hundreds of megabytes before the browser collects them.
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
