import { hash } from 'node:crypto'
import { ownText } from './own-text.ts'

/** Longer texts are shortened. */
const lengthMax = 256
/** A shortened text consists of this many characters and a digest. */
export const shownMax = 200

/** At most 256 characters. Different texts stay different, since a digest replaces the rest. */
export function shortened(text: string): string {
  if (text.length <= lengthMax) return text
  const digest = hash('sha256', text, 'base64url').slice(0, 22)
  return ownText(`${text.slice(0, shownMax)}… ${digest}`)
}

/** The beginning of a text, without sharing memory with it. */
export function beginningOf(text: string, max: number): string {
  return ownText(text.length <= max ? text : `${text.slice(0, max - 1)}…`)
}
