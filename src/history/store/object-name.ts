import { StoreError } from './object-store.ts'

/** S3 allows 1,024 bytes together with the prefix of the archive, which has at most 255. */
const NAME_LENGTH_MAX = 768

/** The most that file systems allow. */
const PART_LENGTH_MAX = 255
/**
 * What needs no escaping in a URL of S3 or on a disk, beside `=` and `+`. Without a dot at the beginning: the
 * directory has its unfinished files under such names.
 */
const PART = /^[A-Za-z0-9_=+~-][A-Za-z0-9_=+~.-]*$/

/** Whether an object can have this name: `a/b/c`, which stays below the root of every store. */
export function isObjectName(name: string): boolean {
  return name.length <= NAME_LENGTH_MAX && name.split('/').every(isPart)
}

/** Throws for a name that no object has; it can come from a damaged manifest. */
export function checkObjectName(name: string): void {
  if (isObjectName(name)) return
  throw new StoreError('unavailable', `${shown(name)} is not the name of an object`)
}

/** Throws unless names can begin with it: it may end in the middle of a part, and may be empty. */
export function checkNamePrefix(prefix: string): void {
  if (prefix === '' || isObjectName(prefix) || isObjectName(prefix.replace(/\/$/, ''))) return
  throw new StoreError('unavailable', `${shown(prefix)} is not the beginning of a name`)
}

function isPart(part: string): boolean {
  return part.length <= PART_LENGTH_MAX && PART.test(part)
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, PART_LENGTH_MAX))
}
