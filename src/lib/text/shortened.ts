import { hash } from 'node:crypto'
import { ownText } from './own-text.ts'

/** Longer texts are shortened. */
export const shortMax = 256
/** A shortened text consists of this many characters and a digest. */
export const shownMax = 200

/** At most 256 characters. Different texts stay different, since a digest replaces the rest. */
export function shortened(text: string): string {
  return text.length <= shortMax ? text : withDigest(text, hash('sha256', text, 'buffer'))
}

/**
 * The same for a text of which only the start is known, and its SHA-256 if it is longer: `start` has
 * more than 256 characters then.
 */
export function shortenedStart(start: string, sha256: Buffer): string {
  return start.length <= shortMax ? start : withDigest(start, sha256)
}

function withDigest(start: string, sha256: Buffer): string {
  return ownText(`${start.slice(0, shownMax)}… ${sha256.toString('base64url').slice(0, 22)}`)
}

/** The beginning of a text, without sharing memory with it. */
export function beginningOf(text: string, max: number): string {
  return ownText(text.length <= max ? text : `${text.slice(0, max - 1)}…`)
}
