/**
 * Reads the few parts of stored values that the checks need, independently of the production code
 * that is under test.
 *
 * Every body that a client writes has an annotation `op` with the text `#<operation>.<facet>;`,
 * and no other `#`. The facet is a number from which all selectable fields of the event follow, so
 * that a selector can be checked without parsing the event.
 */

const hash = 0x23
const digitZero = 0x30

export interface OpenedText {
  /** Where the body begins, after the header line. */
  readonly bodyStart: number
  readonly writtenAtMs: number
  readonly index: number
  /** 0: not written by a client of the simulation. */
  readonly operation: number
  readonly facet: number
}

/** Undefined for a value without the header of an event: `{"w":<ms>,"i":<index>}` and a line feed. */
export function openText(value: Buffer): OpenedText | undefined {
  if (!hasAt(value, 0, beforeTime)) return undefined
  const time = readDigits(value, beforeTime.length)
  if (!hasAt(value, time.end, beforeIndex)) return undefined
  const index = readDigits(value, time.end + beforeIndex.length)
  if (!hasAt(value, index.end, afterIndex)) return undefined
  const bodyStart = index.end + afterIndex.length
  const { operation, facet } = tagOf(value, bodyStart)
  return { bodyStart, writtenAtMs: time.number, index: index.number, operation, facet }
}

const beforeTime = '{"w":'
const beforeIndex = ',"i":'
const afterIndex = '}\n'

function hasAt(bytes: Buffer, at: number, wanted: string): boolean {
  for (let index = 0; index < wanted.length; index++) {
    if (bytes[at + index] !== wanted.charCodeAt(index)) return false
  }
  return true
}

function readDigits(
  bytes: Buffer,
  from: number,
): { readonly number: number; readonly end: number } {
  let number = 0
  let end = from
  for (let digit = (bytes[end] ?? 0) - digitZero; digit >= 0 && digit <= 9; ) {
    number = number * 10 + digit
    digit = (bytes[++end] ?? 0) - digitZero
  }
  return { number, end }
}

export interface Tag {
  readonly operation: number
  readonly facet: number
}

const noTag: Tag = { operation: 0, facet: 0 }

/** The operation that wrote a body. */
export function tagOf(body: Buffer, from = 0): Tag {
  const start = body.indexOf(hash, from)
  if (start < 0) return noTag
  const operation = readDigits(body, start + 1)
  const facet = readDigits(body, operation.end + 1)
  return { operation: operation.number, facet: facet.number }
}

export function tagText(operation: number, facet: number): string {
  return `#${operation}.${facet};`
}

/** The selectable fields of an event. */
export interface Facets {
  readonly reason: string
  readonly type: 'Normal' | 'Warning'
  readonly controller: string
  readonly regardingName: string
  readonly regardingUid: string
  readonly team: string
  /** Another object that it is about. */
  readonly relatedName: string
  readonly lastSeenMs: number
}

export const facetsMax = 1_000
const seenFromMs = Date.UTC(2026, 0, 2, 3, 4, 5)

export function facetsOf(facet: number): Facets {
  const object = facet % 31
  return {
    reason: `Reason${facet % 7}`,
    type: facet % 2 === 0 ? 'Normal' : 'Warning',
    controller: `example.com/controller-${facet % 5}`,
    regardingName: `pod-${object}`,
    regardingUid: `pod-uid-${object}`,
    team: `team-${facet % 4}`,
    relatedName: `node-${facet % 3}`,
    // Some events are seen at the same time.
    lastSeenMs: seenFromMs + (facet % 97) * 1_000,
  }
}

const indexesPerRevision = 1000

export function versionOf(revision: number, index: number): number {
  return revision * indexesPerRevision + index
}

/** The version of the whole state after a revision. */
export function stateVersion(revision: number): number {
  return revision * indexesPerRevision + indexesPerRevision - 1
}

export function revisionIn(version: number): number {
  return Math.floor(version / indexesPerRevision)
}

export function isStateVersion(version: number): boolean {
  return version % indexesPerRevision === indexesPerRevision - 1
}

/** The first revision that a watch from this version needs. */
export function firstRevisionFrom(version: number): number {
  return isStateVersion(version) ? revisionIn(version) + 1 : revisionIn(version)
}
