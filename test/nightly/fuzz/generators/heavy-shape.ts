import type { Random } from '../../../support/random.ts'
import type { FuzzInput, Kind } from '../input.ts'

/** The maximum size of a body, and how much of it is parsed. */
export const SENT_BYTES: number = 3 * 1024 * 1024
export const BODY_BYTES: number = 1024 * 1024

/** A large input that is made when it is needed: all of them together would be hundreds of MB. */
export interface Heavy {
  readonly kind: Kind
  readonly about: string
  /** It uses the large event, which does not always exist. */
  readonly needsGreat?: boolean
  /** Defaults are those of a create with dry run. */
  readonly make: (
    random: Random,
  ) => Partial<Pick<FuzzInput, 'method' | 'target' | 'headers'>> & { readonly body?: string }
}

export function listOf(count: number, entry: (index: number) => string): string {
  return Array.from({ length: count }, (_, index) => entry(index)).join(',')
}

/** Joins as many entries as fit. */
export function upTo(bytes: number, entry: (index: number) => string): string {
  const entries: string[] = []
  let length = 0
  for (let index = 0; ; index++) {
    const text = entry(index)
    length += Buffer.byteLength(text) + 1
    if (length > bytes) return entries.join(',')
    entries.push(text)
  }
}
