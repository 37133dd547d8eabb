/**
 * The record of ages as it is kept in etcd: one JSON object, for example
 *
 *     {"replica":"host/42","created":7,"lease":"8829","renewedMsAgo":4,"wallTimeMs":1794710508193,
 *      "notes":[1000,90000,12,10000]}
 *
 * where `notes` says that revision 1000 had been there for 90 s, and the one 12 later for 80 s: pairs of
 * by how much the revision is greater and the age smaller than in the pair before.
 */
import type { KeyValue } from '../etcd/client.ts'
import { isObject, type Json, memberOf } from '../lib/json.ts'
import {
  revisionMax,
  revisionOf,
  type Version,
  versionOfState,
} from '../storage/resource-version.ts'

/** What the replica that sweeps knew about ages at one moment. */
export interface AgeNotes {
  /** Who wrote it. */
  readonly replica: string
  /** Of the key it is in; undefined in the write that creates the key. */
  readonly createRevision: number | undefined
  /** See `Stopwatch`. */
  readonly lease: bigint
  readonly renewedMsAgo: number
  /** By the wall clock of who wrote it; for comparison only. */
  readonly wallTimeMs: number
  /** Oldest first. */
  readonly notes: readonly AgeNote[]
}

/** When the record was written, this version had been there for so long, or longer. */
interface AgeNote {
  readonly version: Version
  readonly ageMs: number
}

export function encodeAges(ages: AgeNotes): Buffer {
  const notes: number[] = []
  let revision = 0
  let age = 0
  for (const note of ages.notes) {
    // Cut down, so that nothing gets older.
    const ageMs = Math.floor(note.ageMs)
    const at = revisionOf(note.version)
    notes.push(at - revision, notes.length === 0 ? ageMs : age - ageMs)
    revision = at
    age = ageMs
  }
  const text = JSON.stringify({
    replica: ages.replica,
    created: ages.createRevision,
    lease: String(ages.lease),
    // Rounded up, for the same reason.
    renewedMsAgo: Math.ceil(ages.renewedMsAgo),
    wallTimeMs: ages.wallTimeMs,
    notes,
  })
  return Buffer.from(text)
}

/**
 * Undefined when this is no record about the etcd it was read from. A key that was copied from another
 * etcd has another revision of creation than it says, and its revisions mean nothing here.
 */
export function decodeAges(
  kv: Pick<KeyValue, 'value' | 'createRevision' | 'modRevision'>,
): AgeNotes | undefined {
  const record = parsed(kv.value)
  if (!isObject(record)) return undefined
  const replica = memberOf(record, 'replica')
  const lease = memberOf(record, 'lease')
  const renewedMsAgo = memberOf(record, 'renewedMsAgo')
  const wallTimeMs = memberOf(record, 'wallTimeMs')
  const { createRevision } = kv
  if (
    memberOf(record, 'created') !== createRevision ||
    typeof replica !== 'string' ||
    typeof lease !== 'string' ||
    !isLease(lease) ||
    !isCount(renewedMsAgo) ||
    typeof wallTimeMs !== 'number'
  ) {
    return undefined
  }
  const notes = decodeNotes(memberOf(record, 'notes'), kv.modRevision)
  if (notes === undefined) return undefined
  return { replica, createRevision, lease: BigInt(lease), renewedMsAgo, wallTimeMs, notes }
}

/** As etcd can have it: a signed number of 64 bits. */
function isLease(text: string): boolean {
  return /^-?\d{1,19}$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text)
}

function decodeNotes(pairs: Json | undefined, modRevision: number): AgeNote[] | undefined {
  if (!Array.isArray(pairs) || pairs.length % 2 !== 0) return undefined
  const notes: AgeNote[] = []
  let revision = 0
  let age = 0
  for (let index = 0; index < pairs.length; index += 2) {
    const [further, younger] = [pairs[index], pairs[index + 1]]
    if (!isCount(further) || !isCount(younger)) return undefined
    revision += further
    age = index === 0 ? younger : age - younger
    // Whoever wrote it knew of no revision that came after.
    if (age < 0 || revision > revisionMax || revision >= modRevision) return undefined
    notes.push({ version: versionOfState(revision), ageMs: age })
  }
  return notes
}

function isCount(value: Json | undefined): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

function parsed(value: Buffer): Json | undefined {
  try {
    return JSON.parse(value.toString())
  } catch {
    return undefined
  }
}
