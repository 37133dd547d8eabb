/** The characters of the suffixes and hashes that Kubernetes generates: no vowels, so no words. */
export const SAFE_LETTERS = 'bcdfghjklmnpqrstvwxz'
export const SAFE_DIGITS = '2456789'
export const DIGITS = '0123456789'

/** Sets a bit for each of these characters in a table by UTF-16 code unit. */
export function addToSet(table: Uint8Array, characters: string, bit: number): void {
  for (let index = 0; index < characters.length; index++) {
    const code = characters.charCodeAt(index)
    table[code] = (table[code] ?? 0) | bit
  }
}
