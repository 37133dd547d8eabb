/**
 * The older changes of the ring, packed and compressed, a few dozen together. Events are alike: a
 * pack takes a tenth of the bytes of its changes, and none of the objects that the garbage collector
 * would walk over. Packing takes 3 microseconds for each change, and unpacking 1. A change that is
 * read is unpacked into a new object, whose bodies are views of the unpacked bytes.
 */

import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { keyOfPath, pathOf } from '../../storage/event-scope.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { StoredEvent, WatchItem } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'

/** A reader that keeps one change keeps all that was unpacked with it, so packs are small. */
export const packedBytesEnough: number = 64 * 1024

/** Of each state: version, time, offset of the version, length of the body. */
const stateHeadBytes = 8 + 8 + 4 + 4
/** Of each change, before its states: what it is, and the length of its key. */
const changeHeadBytes = 1 + 4

/** Besides the bytes: the objects of a pack, and its table of changes. */
const packOverheadBytes = 1_024
const tableBytes = 8 + 4
/** The fastest that still compresses. */
const level = 1

/** zlib takes no smaller one. */
const chunkBytesMin = 64

const deleted = 0
const created = 1
const updated = 2

interface Pack {
  /** Position of its first change. */
  readonly first: number
  readonly compressed: Buffer
  /** Of each change: its version, and where it begins in the unpacked bytes. */
  readonly versions: Float64Array
  readonly offsets: Uint32Array
  readonly unpackedLength: number
}

export class PackedChanges {
  /** Oldest first, without gaps. */
  readonly #packs: Pack[] = []
  /** The pack that was read last: readers take many changes in a row. */
  #open: { readonly pack: Pack; readonly bytes: Buffer } | undefined

  /** Appends changes, the first of which has this position. Returns the bytes that they take. */
  append(first: number, items: readonly WatchItem[]): number {
    const paths = items.map(({ stored }) => Buffer.from(pathOf(stored.key)))
    const offsets = new Uint32Array(items.length)
    let end = 0
    for (const [index, item] of items.entries()) {
      offsets[index] = end
      end += packedBytesOf(item) + (paths[index]?.length ?? 0)
    }
    const bytes = Buffer.allocUnsafe(end)
    for (const [index, item] of items.entries()) {
      pack(item, paths[index] ?? Buffer.of(), { bytes, at: offsets[index] ?? 0 })
    }
    const added = {
      first,
      compressed: compressed(bytes),
      versions: Float64Array.from(items, ({ stored }) => stored.version),
      offsets,
      unpackedLength: end,
    }
    this.#packs.push(added)
    return bytesOf(added)
  }

  at(position: number): WatchItem {
    const pack = this.#find(position)
    const at = pack.offsets[position - pack.first] ?? 0
    return unpack({ bytes: this.#unpacked(pack), at })
  }

  versionAt(position: number): Version {
    const pack = this.#find(position)
    return pack.versions[position - pack.first] as Version
  }

  /** Frees the packs whose changes are all before this position; returns the bytes they took. */
  dropBefore(position: number): number {
    let bytes = 0
    for (let oldest = this.#packs[0]; oldest !== undefined; oldest = this.#packs[0]) {
      if (endOf(oldest) > position) break
      this.#packs.shift()
      if (this.#open?.pack === oldest) this.#open = undefined
      bytes += bytesOf(oldest)
    }
    return bytes
  }

  #unpacked(pack: Pack): Buffer {
    if (this.#open?.pack !== pack) {
      const { compressed, unpackedLength } = pack
      // In one piece, with no room to spare.
      const options = { chunkSize: Math.max(chunkBytesMin, unpackedLength) }
      this.#open = { pack, bytes: inflateRawSync(compressed, options) }
    }
    return this.#open.bytes
  }

  #find(position: number): Pack {
    let low = 0
    let high = this.#packs.length - 1
    while (low < high) {
      const middle = (low + high + 1) >>> 1
      if ((this.#packs[middle]?.first ?? 0) <= position) low = middle
      else high = middle - 1
    }
    const pack = this.#packs[low]
    if (pack === undefined || position < pack.first || position >= endOf(pack)) {
      throw new RangeError(`no change at position ${position} in the ring`)
    }
    return pack
  }
}

/** Copied: what zlib returns is a view of a larger buffer. */
function compressed(bytes: Buffer): Buffer {
  const view = deflateRawSync(bytes, { level })
  const copy = Buffer.allocUnsafeSlow(view.length)
  view.copy(copy)
  return copy
}

function endOf({ first, offsets }: Pack): number {
  return first + offsets.length
}

function bytesOf({ compressed, offsets }: Pack): number {
  return packOverheadBytes + compressed.length + offsets.length * tableBytes
}

/** Without the key. */
function packedBytesOf(item: WatchItem): number {
  const previous = item.type === 'put' ? item.previous : undefined
  const previousBytes = previous === undefined ? 0 : stateHeadBytes + previous.body.length
  return changeHeadBytes + stateHeadBytes + item.stored.body.length + previousBytes
}

/** A place in a buffer, which moves on. */
interface Place {
  readonly bytes: Buffer
  at: number
}

function pack(item: WatchItem, path: Buffer, place: Place): void {
  const { bytes } = place
  const previous = item.type === 'put' ? item.previous : undefined
  const put = previous === undefined ? created : updated
  bytes.writeUInt8(item.type === 'delete' ? deleted : put, place.at)
  bytes.writeUInt32LE(path.length, place.at + 1)
  place.at += changeHeadBytes
  packState(item.stored, place)
  if (previous !== undefined) packState(previous, place)
  path.copy(bytes, place.at)
}

function packState(stored: StoredEvent, place: Place): void {
  const { bytes, at } = place
  bytes.writeDoubleLE(stored.version, at)
  bytes.writeDoubleLE(stored.writtenAtMs, at + 8)
  bytes.writeUInt32LE(stored.versionOffset, at + 16)
  bytes.writeUInt32LE(stored.body.length, at + 20)
  stored.body.copy(bytes, at + stateHeadBytes)
  place.at += stateHeadBytes + stored.body.length
}

function unpack(place: Place): WatchItem {
  const { bytes } = place
  const kind = bytes.readUInt8(place.at)
  const pathLength = bytes.readUInt32LE(place.at + 1)
  place.at += changeHeadBytes
  const state = unpackState(place)
  const before = kind === updated ? unpackState(place) : undefined
  const key = keyOfPath(bytes.toString('utf8', place.at, place.at + pathLength))
  const stored = new StoredBody({ ...state, key })
  if (kind === deleted) return { type: 'delete', stored }
  return { type: 'put', stored, previous: before && new StoredBody({ ...before, key }) }
}

function unpackState(place: Place): Omit<StoredEvent, 'key' | 'fields'> {
  const { bytes, at } = place
  const begin = at + stateHeadBytes
  const end = begin + bytes.readUInt32LE(at + 20)
  place.at = end
  return {
    version: bytes.readDoubleLE(at) as Version,
    writtenAtMs: bytes.readDoubleLE(at + 8),
    versionOffset: bytes.readUInt32LE(at + 16),
    body: bytes.subarray(begin, end),
  }
}
