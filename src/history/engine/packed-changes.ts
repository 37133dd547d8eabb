/** Changes in a message: objects with buffers of their own take the server much longer to send. */
import type { ArchivedChange, PackedChanges } from './protocol.ts'

const KEYS = 3
const NUMBERS = 3
const LENGTHS = 4

export function packChanges(changes: readonly ArchivedChange[]): PackedChanges {
  const keys: string[] = []
  const numbers = new Float64Array(NUMBERS * changes.length)
  const lengths = new Uint32Array(LENGTHS * changes.length)
  const parts: Uint8Array[] = []
  let at = 0
  const add = (part: Uint8Array) => {
    lengths[at++] = part.length
    if (part.length > 0) parts.push(part)
  }
  for (const [index, { key, body, trailer, version, writtenAtMs, previous }] of changes.entries()) {
    keys.push(key.cluster, key.namespace, key.name)
    const isUnknown = previous !== undefined && 'unknownBeforeMs' in previous
    numbers[NUMBERS * index] = version
    numbers[NUMBERS * index + 1] = writtenAtMs
    numbers[NUMBERS * index + 2] = isUnknown ? previous.unknownBeforeMs : Number.NaN
    add(body)
    add(trailer)
    add(previous === undefined || isUnknown ? NO_BYTES : previous.body)
    add(previous === undefined || isUnknown ? NO_BYTES : previous.trailer)
  }
  return { keys, numbers, lengths, bytes: Buffer.concat(parts) }
}

const NO_BYTES = new Uint8Array(0)

/** The bytes are views. */
export function* unpackChanges(packed: PackedChanges): Iterable<ArchivedChange> {
  const { keys, numbers, lengths } = packed
  const bytes = Buffer.from(packed.bytes.buffer, packed.bytes.byteOffset, packed.bytes.byteLength)
  let end = 0
  const next = (length: number): Buffer => {
    end += length
    return bytes.subarray(end - length, end)
  }
  for (let index = 0; KEYS * index < keys.length; index++) {
    const [cluster = '', namespace = '', name = ''] = keys.slice(KEYS * index, KEYS * (index + 1))
    const [version = 0, writtenAtMs = 0, unknownBeforeMs = Number.NaN] = numbers.subarray(
      NUMBERS * index,
      NUMBERS * (index + 1),
    )
    const [body = 0, trailer = 0, earlierBody = 0, earlierTrailer = 0] = lengths.subarray(
      LENGTHS * index,
      LENGTHS * (index + 1),
    )
    yield {
      key: { cluster, namespace, name },
      version,
      writtenAtMs,
      body: next(body),
      trailer: next(trailer),
      previous: Number.isNaN(unknownBeforeMs)
        ? earlierState(next(earlierBody), next(earlierTrailer))
        : { unknownBeforeMs },
    }
  }
}

/** No body is empty. */
function earlierState(body: Buffer, trailer: Buffer): ArchivedChange['previous'] {
  return body.length === 0 ? undefined : { body, trailer }
}
