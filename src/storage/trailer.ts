/**
 * What the server knows about an event beyond its fields: when it was observed, and the workload and
 * node by other events or owner references. In etcd it follows the JSON of the event as spaces
 * and tabs, one bit each. JSON ignores them, so a release that knows nothing of trailers reads and
 * serves the event all the same. An event of which its fields say everything has no trailer.
 */
import type { ObjectReference } from './event-fields.ts'
import type { Occurrences, SeenFields, Span } from './occurrences.ts'
import { firstOccurrences } from './occurrences.ts'

export interface Trailer {
  /** Undefined: only the fields of the event say it. */
  readonly occurrences?: Occurrences | undefined
  /** Undefined: the name of the regarded object says it. */
  readonly workload?: WorkloadMark | undefined
  /** Undefined: the fields of the event say it. */
  readonly node?: string | undefined
}

export interface WorkloadMark {
  readonly kind: string
  readonly name: string
  /** Whether an event or an owner reference says so. */
  readonly rule: 'event' | 'owner'
}

export const NO_TRAILER: Buffer = Buffer.alloc(0)

const zero = 0x20
const one = 0x09
const SECOND_MS = 1_000
/** The first number of every trailer. A reader ignores trailers of other forms. */
const FORM = 1
/** Longer names are left out unless the name of the object begins so: a character takes eight bytes. */
const NAME_LENGTH_MAX = 63
/** Spans that are read: more than are ever written. */
const SPANS_READ_MAX = 64

/** Frequent kinds have a number. Never reorder: stored trailers contain it. */
const KINDS = [
  'Deployment',
  'ReplicaSet',
  'StatefulSet',
  'DaemonSet',
  'Job',
  'CronJob',
  'ReplicationController',
  'Node',
  'Pod',
]

/** What the numbers of a trailer are relative to. */
export interface TrailerFields extends SeenFields {
  readonly regarding: Pick<ObjectReference, 'name'>
}

export function encodeTrailer(trailer: Trailer, fields: TrailerFields): Buffer {
  const { occurrences, workload, node = '' } = trailer
  const spans = occurrences?.spans ?? []
  const mark =
    workload !== undefined && isStorable(workload, fields.regarding.name) ? workload : undefined
  const place = node.length <= NAME_LENGTH_MAX ? node : ''
  if (spans.length === 0 && mark === undefined && place === '') return NO_TRAILER
  const bits = new BitWriter()
  bits.number(FORM)
  bits.number(spans.length)
  if (spans.length > 0) writeSpans(bits, spans, fields.lastSeenMs)
  bits.number(occurrences?.isFirstEstimated === true ? 1 : 0)
  writeWorkload(bits, mark, fields.regarding.name)
  bits.text(place)
  return bits.bytes()
}

function isStorable({ kind, name }: WorkloadMark, regarded: string): boolean {
  const isShort = name.length <= NAME_LENGTH_MAX || regarded.startsWith(name)
  return kind.length <= NAME_LENGTH_MAX && isShort
}

/**
 * From the newest to the oldest, in whole seconds. An open span begins where the one before ends, and
 * is recognised by that.
 */
function writeSpans(bits: BitWriter, spans: readonly Span[], lastSeenMs: number): void {
  let after = secondsOf(lastSeenMs)
  for (const span of spans.toReversed()) {
    const first = secondsOf(span.firstMs)
    const last = secondsOf(span.lastMs)
    bits.number(after - last)
    bits.number(last - first)
    bits.number(span.count)
    after = first
  }
}

function writeWorkload(bits: BitWriter, mark: WorkloadMark | undefined, regarded: string): void {
  if (mark === undefined) {
    bits.number(0)
    return
  }
  const { kind, name, rule } = mark
  bits.number(rule === 'event' ? 1 : 2)
  const known = KINDS.indexOf(kind)
  bits.number(known + 1)
  if (known < 0) bits.text(kind)
  // Names of pods begin with that of their workload.
  const isPrefix = regarded.startsWith(name)
  bits.number(isPrefix ? name.length + 1 : 0)
  if (!isPrefix) bits.text(name)
}

/** A trailer that cannot be read counts as none. */
export function decodeTrailer(bytes: Buffer | undefined, fields: TrailerFields): Trailer {
  if (bytes === undefined || bytes.length === 0) return NOTHING
  const bits = new BitReader(bytes)
  if (bits.number() !== FORM) return NOTHING
  const spans = readSpans(bits, fields.lastSeenMs)
  const isFirstEstimated = bits.number() === 1
  const workload = readWorkload(bits, fields.regarding.name)
  const node = bits.text()
  if (bits.isBeyondEnd || spans === undefined) return NOTHING
  return {
    ...(areOf(fields, spans) && { occurrences: { spans, isFirstEstimated } }),
    ...(workload !== undefined && { workload }),
    ...(node !== '' && { node }),
  }
}

const NOTHING: Trailer = {}

/** Whether these are all occurrences of the event. Otherwise the bytes are damaged. */
function areOf({ occurrences }: SeenFields, spans: readonly Span[]): boolean {
  return spans.reduce((total, { count }) => total + count, 0) === occurrences
}

function readSpans(bits: BitReader, lastSeenMs: number): readonly Span[] | undefined {
  const count = bits.number()
  if (count > SPANS_READ_MAX) return undefined
  const spans: Span[] = []
  let after = secondsOf(lastSeenMs)
  for (let index = 0; index < count; index++) {
    const distance = bits.number()
    const last = after - distance
    const first = last - bits.number()
    // The fraction of the second is known only where the event has it.
    const lastMs = index === 0 && distance === 0 ? lastSeenMs : last * SECOND_MS
    const firstMs = first === last ? lastMs : first * SECOND_MS
    const newer = spans.at(-1)
    if (newer !== undefined && newer.count > 1 && distance === 0) {
      spans[index - 1] = { ...newer, isOpen: true }
    }
    const occurrences = bits.number()
    if (occurrences < 1) return undefined
    spans.push({ firstMs, lastMs, count: occurrences })
    after = first
  }
  return spans.reverse()
}

function readWorkload(bits: BitReader, regarded: string): WorkloadMark | undefined {
  const rule = bits.number()
  if (rule === 0) return undefined
  const known = bits.number()
  const kind = known === 0 ? bits.text() : KINDS[known - 1]
  const length = bits.number()
  const name = length === 0 ? bits.text() : regarded.slice(0, length - 1)
  // A later release may know more kinds.
  return kind === undefined ? undefined : { kind, name, rule: rule === 1 ? 'event' : 'owner' }
}

/** The occurrences of an event with this trailer. */
export function occurrencesIn(bytes: Buffer | undefined, fields: TrailerFields): Occurrences {
  return decodeTrailer(bytes, fields).occurrences ?? firstOccurrences(fields)
}

/** Where the body of a stored value ends and its trailer begins. */
export function trailerStart(value: Buffer): number {
  let start = value.length
  while (start > 0 && (value[start - 1] === zero || value[start - 1] === one)) start--
  return start
}

/** Writes the bits of a trailer as spaces and tabs. */
export function writeBlanks(trailer: Buffer, target: Buffer, at: number): void {
  for (const [index, byte] of trailer.entries()) {
    for (let bit = 0; bit < 8; bit++) {
      target[at + 8 * index + bit] = ((byte >> bit) & 1) === 1 ? one : zero
    }
  }
}

/** What an event takes in etcd, besides its key and its header. */
export function storedBytes({ body, trailer }: StoredParts): number {
  return body.length + (trailer === undefined ? 0 : blanksOf(trailer))
}

interface StoredParts {
  readonly body: Buffer
  readonly trailer?: Buffer | undefined
}

/** How many bytes `writeBlanks` writes. */
export function blanksOf(trailer: Buffer): number {
  return 8 * trailer.length
}

/** More than any trailer has: a value that another program changed. */
const BLANKS_MAX = 16 * 1024

/** The trailer in spaces and tabs. */
export function readBlanks(blanks: Buffer): Buffer {
  if (blanks.length === 0 || blanks.length > BLANKS_MAX) return NO_TRAILER
  const trailer = Buffer.alloc(Math.ceil(blanks.length / 8))
  for (let at = 0; at < blanks.length; at++) {
    if (blanks[at] === one) trailer[at >> 3] = (trailer[at >> 3] ?? 0) | (1 << (at & 7))
  }
  return trailer
}

/** Writes numbers in groups of four bits: three of the number, lowest first, and one if more follow. */
class BitWriter {
  readonly #bytes: number[] = []
  #bits = 0

  number(value: number): void {
    let rest = value
    do {
      const low = rest % 8
      rest = Math.floor(rest / 8)
      this.#write(low + (rest > 0 ? 8 : 0), 4)
    } while (rest > 0)
  }

  text(text: string): void {
    const bytes = Buffer.from(text)
    this.number(bytes.length)
    for (const byte of bytes) this.#write(byte, 8)
  }

  bytes(): Buffer {
    return Buffer.from(this.#bytes)
  }

  #write(value: number, bits: number): void {
    for (let bit = 0; bit < bits; bit++, this.#bits++) {
      const at = this.#bits >> 3
      this.#bytes[at] = (this.#bytes[at] ?? 0) | (((value >> bit) & 1) << (this.#bits & 7))
    }
  }
}

class BitReader {
  readonly #bytes: Buffer
  #bits = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isBeyondEnd(): boolean {
    return this.#bits > 8 * this.#bytes.length
  }

  number(): number {
    let value = 0
    let factor = 1
    for (;;) {
      const group = this.#read(4)
      value += (group & 7) * factor
      factor *= 8
      if ((group & 8) === 0 || this.isBeyondEnd || factor > Number.MAX_SAFE_INTEGER) return value
    }
  }

  text(): string {
    const length = this.number()
    if (length > this.#bytes.length) {
      this.#bits = Number.POSITIVE_INFINITY
      return ''
    }
    return Buffer.from(Array.from({ length }, () => this.#read(8))).toString()
  }

  #read(bits: number): number {
    let value = 0
    for (let bit = 0; bit < bits; bit++, this.#bits++) {
      value |= (((this.#bytes[this.#bits >> 3] ?? 0) >> (this.#bits & 7)) & 1) << bit
    }
    return value
  }
}

function secondsOf(ms: number): number {
  return Math.floor(ms / SECOND_MS)
}
