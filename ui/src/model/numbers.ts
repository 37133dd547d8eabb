/** Formats numbers. */

/** `12,412` */
export function countText(count: number): string {
  // Small counts are the most frequent, and locale formatting is slow.
  return count < 1_000 ? String(count) : count.toLocaleString('en')
}

/** `1 event`, `12,412 events` */
export function counted(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? '' : 's'}`
}

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** `200 MiB`, `83.7 MiB` */
export function bytesText(bytes: number): string {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  const value = bytes / 1_024 ** step
  return `${Number(value.toPrecision(value < 1_000 ? 3 : 4))} ${UNITS[step]}`
}

/** Returns the share in percent. Only nothing is 0, and only everything is 100. */
export function percentOf(part: number, whole: number): number {
  if (whole <= 0 || part <= 0) return 0
  if (part >= whole) return 100
  return Math.min(99, Math.max(1, Math.round((100 * part) / whole)))
}

/**
 * Whether version `a` is newer than `b`. Versions are integers that may exceed the precision of a
 * double.
 */
export function isNewer(a: string, b: string): boolean {
  return a.length === b.length ? a > b : a.length > b.length
}
