/**
 * The age record as it is stored in etcd: one JSON object, for example
 *
 *     {"replica":"host/42","created":7,"lease":"8829","renewedMsAgo":4,"wallTimeMs":1794710508193,
 *      "notes":[1000,90000,12,10000]}
 *
 * where `notes` says that revision 1000 was 90 s old and revision 1012 was 80 s old. `notes` is a
 * flat array of pairs, delta-encoded: by how much the revision is greater, and the age smaller,
 * than in the pair before.
 */
import type { KeyValue } from '../etcd/client.ts'
import { isObject, type Json, memberOf, parsedJson } from '../lib/json.ts'
import {
  revisionMax,
  revisionOf,
  type Version,
  versionOfState,
} from '../storage/resource-version.ts'

/** What the sweeping replica knew about ages when it wrote the record. */
export interface AgeNotes {
  /** The replica that wrote the record. */
  readonly replica: string
  /** Create revision of the record's key; undefined in the write that creates the key. */
  readonly createRevision: number | undefined
  /** See `Stopwatch`. */
  readonly lease: bigint
  readonly renewedMsAgo: number
  /** The writer's wall clock; compared with other clocks, never used for ages. */
  readonly wallTimeMs: number
  /** Oldest first. */
  readonly notes: readonly AgeNote[]
}

/** When the record was written, this version was at least this old. */
interface AgeNote {
  readonly version: Version
  readonly ageMs: number
}

export function encodeAges(ages: AgeNotes): Buffer {
  const notes: number[] = []
  let revision = 0
  let age = 0
  for (const note of ages.notes) {
    // Rounded down, so that no event becomes older.
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
 * Undefined when the value is not a record of this etcd. A key copied from another etcd has a
 * different create revision from the one in the record, and the record's revisions mean nothing
 * here.
 */
export function decodeAges(
  kv: Pick<KeyValue, 'value' | 'createRevision' | 'modRevision'>,
): AgeNotes | undefined {
  const record = parsedJson(kv.value)
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

/** A signed 64-bit integer. */
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
    // The writer cannot have known a later revision than that of its own write.
    if (age < 0 || revision > revisionMax || revision >= modRevision) return undefined
    notes.push({ version: versionOfState(revision), ageMs: age })
  }
  return notes
}

function isCount(value: Json | undefined): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
