/**
 * Parses DER, the encoding of certificates, as far as needed to find fields in it. Anything that is
 * not valid DER is an error, so that a certificate cannot be read in two ways.
 */

export interface DerValue {
  /** The encoded byte: class, form and number. */
  readonly tag: number
  readonly content: Buffer
}

export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  octetString: 0x04,
  oid: 0x06,
  utf8: 0x0c,
  numeric: 0x12,
  printable: 0x13,
  ia5: 0x16,
  bmp: 0x1e,
  sequence: 0x30,
  set: 0x31,
  /** `[n]`, constructed. */
  context: 0xa0,
} as const

/** The low bits of a tag. If all are set, the tag number follows in further bytes. */
const TAG_NUMBER = 0x1f
const LONG_LENGTH = 0x80
const LENGTH_BYTES_MAX = 3

/** Throws unless the bytes are exactly one value. */
export function derValue(bytes: Buffer): DerValue {
  const [value, ...more] = derValues(bytes)
  if (value === undefined || more.length > 0) throw new Error('not one DER value')
  return value
}

/** Throws unless the bytes are a sequence of whole values. */
export function derValues(bytes: Buffer): readonly DerValue[] {
  const values: DerValue[] = []
  let at = 0
  while (at < bytes.length) {
    const tag = bytes[at] ?? 0
    if ((tag & TAG_NUMBER) === TAG_NUMBER) throw new Error('a DER tag of several bytes')
    const { start, length } = lengthAt(bytes, at + 1)
    const end = start + length
    if (end > bytes.length) throw new Error('a DER value is truncated')
    values.push({ tag, content: bytes.subarray(start, end) })
    at = end
  }
  return values
}

/** The members of a sequence or set. */
export function derMembers(value: DerValue | undefined, tag: number): readonly DerValue[] {
  return derValues(derContent(value, tag))
}

export function derContent(value: DerValue | undefined, tag: number): Buffer {
  if (value === undefined || value.tag !== tag) throw new Error('another DER value was expected')
  return value.content
}

/** Returns an object identifier in dotted notation. */
export function derOid(value: DerValue | undefined): string {
  const content = derContent(value, TAG.oid)
  if (((content.at(-1) ?? LONG_LENGTH) & LONG_LENGTH) !== 0) throw new Error('an OID is truncated')
  const arcs: bigint[] = []
  let arc = 0n
  for (const byte of content) {
    arc = (arc << 7n) | BigInt(byte & 0x7f)
    if ((byte & 0x80) !== 0) continue
    arcs.push(arc)
    arc = 0n
  }
  const [first = 0n, ...rest] = arcs
  const root = first < 80n ? first / 40n : 2n
  return [root, first - root * 40n, ...rest].join('.')
}

/** Reads a non-negative integer of up to four bytes. */
export function derInteger(value: DerValue | undefined): number {
  const content = derContent(value, TAG.integer)
  if (content.length === 0 || content.length > 4 || (content[0] ?? 0) > 0x7f) {
    throw new Error('a DER integer is out of range')
  }
  return content.readUIntBE(0, content.length)
}

/** Decodes the string types in use. Older types are errors: their character sets are ambiguous. */
export function derText({ tag, content }: DerValue): string {
  switch (tag) {
    case TAG.utf8:
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content)
    case TAG.numeric:
    case TAG.printable:
    case TAG.ia5:
      if (content.some((byte) => byte > 0x7f)) throw new Error('a DER string is not ASCII')
      return content.toString('latin1')
    case TAG.bmp:
      return new TextDecoder('utf-16be', { fatal: true, ignoreBOM: true }).decode(content)
    default:
      throw new Error('a DER string of an unsupported type')
  }
}

function lengthAt(bytes: Buffer, at: number): { readonly start: number; readonly length: number } {
  const first = bytes[at]
  if (first === undefined) throw new Error('a DER value is truncated')
  if (first < LONG_LENGTH) return { start: at + 1, length: first }
  const count = first - LONG_LENGTH
  if (count === 0 || count > LENGTH_BYTES_MAX || at + 1 + count > bytes.length) {
    throw new Error('a DER length is out of range')
  }
  const length = bytes.readUIntBE(at + 1, count)
  const isShortest = length >= LONG_LENGTH && (count === 1 || length >= 2 ** (8 * (count - 1)))
  if (!isShortest) throw new Error('a DER length is not minimal')
  return { start: at + 1 + count, length }
}
