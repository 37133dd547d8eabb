/**
 * FNV-1a over 32-bit numbers, with the final mixing of MurmurHash3: one multiplication for each
 * number, and names that differ only in their last letters still differ in all bits.
 */
export const HASH_BASIS = 0x811c9dc5

export function hashed(hash: number, value: number): number {
  return Math.imul(hash ^ value, 0x01000193)
}

/** Returns an unsigned number. */
export function mixed(hash: number): number {
  let value = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35)
  return (value ^ (value >>> 16)) >>> 0
}
