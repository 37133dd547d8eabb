/**
 * Changes that few watchers still read, in little memory: columns instead of objects, no encoded
 * frames, no parsed fields, and bodies together in chunks, most of which are freed in the order in
 * which they were filled. The body of a put is not copied while memory has that state of the event in
 * a row.
 */
import { ownText } from '../../lib/text/own-text.ts'
import { keyOfPath, pathOf, scopePath } from '../../storage/event-scope.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { EventKey, EventScope, StoredEvent, WatchItem } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'

const chunkBytes = 256 * 1024
/** A longer text gets a chunk of its own, so that no chunk has much unused space at its end. */
const sharedBytesMax = chunkBytes / 8
/** The columns of one change. */
const changeBytes = 64
/** A previous state besides its body. */
const previousBytes = 128
/** A scope besides its texts. */
const scopeBytes = 256

/** The rows of memory. */
export interface Rows {
  /** Whether the row has an event at exactly this version. */
  holds(row: number, version: Version): boolean
  /** The body is a view. */
  read(row: number): StoredEvent
}

/** The cluster and namespace of changes, which share it. */
interface ChangeScope {
  readonly cluster: string
  readonly namespace: string
  readonly path: string
  changes: number
}

interface Chunk {
  readonly bytes: Buffer
  used: number
  /** How many texts are still needed. */
  alive: number
}

/**
 * Whether a change is packed now or was packed earlier, and its row is freed now. A chunk lives as
 * long as the newest change in it, so the two have different chunks.
 */
type Age = 'new' | 'old'

const NOTHING = { row: undefined, previous: undefined }

/** The state that an update replaced. */
interface Previous extends Pick<StoredEvent, 'version' | 'writtenAtMs' | 'versionOffset'> {
  readonly chunk: Chunk
  readonly offset: number
  readonly length: number
}

/** Packed changes by index: the owner decides which indexes are in use. */
export class PackedChanges {
  readonly #rows: Rows | undefined
  readonly #versions: Float64Array
  readonly #times: Float64Array
  readonly #versionOffsets: Uint16Array
  readonly #isDelete: Uint8Array
  readonly #scopes: (ChangeScope | undefined)[]
  readonly #previous: (Previous | undefined)[]
  /** Undefined: the event is in a row of memory. A chunk has the path of its key, then its body. */
  readonly #chunks: (Chunk | undefined)[]
  /** Offsets in chunks, or rows. */
  readonly #places: Uint32Array
  readonly #pathLengths: Uint16Array
  readonly #bodyLengths: Uint32Array
  readonly #knownScopes = new Map<string, ChangeScope>()
  /** The chunks that are being filled. */
  readonly #current: Record<Age, Chunk | undefined> = { new: undefined, old: undefined }
  #bytes = 0

  constructor(size: number, rows: Rows | undefined) {
    this.#rows = rows
    this.#versions = new Float64Array(size)
    this.#times = new Float64Array(size)
    this.#versionOffsets = new Uint16Array(size)
    this.#isDelete = new Uint8Array(size)
    this.#scopes = new Array<undefined>(size).fill(undefined)
    this.#previous = new Array<undefined>(size).fill(undefined)
    this.#chunks = new Array<undefined>(size).fill(undefined)
    this.#places = new Uint32Array(size)
    this.#pathLengths = new Uint16Array(size)
    this.#bodyLengths = new Uint32Array(size)
  }

  /** The memory of all packed changes, whole chunks included. */
  get bytes(): number {
    return this.#bytes
  }

  pack(index: number, item: WatchItem): void {
    const { stored } = item
    this.#bytes += changeBytes
    this.#versions[index] = stored.version
    this.#times[index] = stored.writtenAtMs
    this.#versionOffsets[index] = stored.versionOffset
    this.#isDelete[index] = item.type === 'delete' ? 1 : 0
    this.#scopes[index] = this.#enterScope(stored.key)
    const { row, previous } = item.type === 'put' ? item : NOTHING
    this.#previous[index] = previous && this.#packedPrevious(previous)
    if (row !== undefined && this.#rows?.holds(row, stored.version) === true) {
      this.#places[index] = row
    } else this.#copy(index, stored, 'new')
  }

  versionAt(index: number): Version {
    return (this.#versions[index] ?? 0) as Version
  }

  /** The smallest scope that the change is in. */
  scopeAt(index: number): EventScope | undefined {
    return this.#scopes[index]
  }

  /** The row is about to be freed: copies the event if it is in it. */
  leaveRow(index: number, row: number): void {
    if (this.#chunks[index] !== undefined || this.#places[index] !== row) return
    this.#copy(index, this.#read(row), 'old')
  }

  /** With bodies of its own, so that a slow reader of one change does not keep a chunk alive. */
  unpack(index: number): WatchItem {
    const { key, body } = this.#unpacked(index)
    const stored = new StoredBody({
      ...{ key, body, version: this.versionAt(index) },
      writtenAtMs: this.#times[index] ?? 0,
      versionOffset: this.#versionOffsets[index] ?? 0,
    })
    if (this.#isDelete[index] === 1) return { type: 'delete', stored }
    const previous = this.#previous[index]
    return { type: 'put', stored, previous: previous && unpackedPrevious(key, previous) }
  }

  /** The change is not needed any more. */
  drop(index: number): void {
    this.#bytes -= changeBytes
    this.#release(this.#chunks[index])
    this.#chunks[index] = undefined
    this.#leaveScope(this.#scopes[index])
    this.#scopes[index] = undefined
    const previous = this.#previous[index]
    if (previous === undefined) return
    this.#bytes -= previousBytes
    this.#release(previous.chunk)
    this.#previous[index] = undefined
  }

  #copy(index: number, { key, body }: StoredEvent, age: Age): void {
    const path = pathOf(key)
    const pathLength = Buffer.byteLength(path)
    const chunk = this.#chunkFor(pathLength + body.length, age)
    this.#chunks[index] = chunk
    this.#places[index] = chunk.used
    this.#pathLengths[index] = pathLength
    this.#bodyLengths[index] = body.length
    chunk.bytes.write(path, chunk.used)
    chunk.used += pathLength
    append(chunk, body)
  }

  #unpacked(index: number): Pick<StoredEvent, 'key' | 'body'> {
    const chunk = this.#chunks[index]
    const start = this.#places[index] ?? 0
    if (chunk === undefined) {
      const { key, body } = this.#read(start)
      return { key, body: Buffer.from(body) }
    }
    const bodyStart = start + (this.#pathLengths[index] ?? 0)
    return {
      key: keyOfPath(chunk.bytes.toString('utf8', start, bodyStart)),
      body: copied(chunk, bodyStart, this.#bodyLengths[index] ?? 0),
    }
  }

  #packedPrevious({ version, writtenAtMs, versionOffset, body }: StoredEvent): Previous {
    this.#bytes += previousBytes
    const { length } = body
    const chunk = this.#chunkFor(length, 'new')
    const offset = chunk.used
    append(chunk, body)
    return { version, writtenAtMs, versionOffset, chunk, offset, length }
  }

  #read(row: number): StoredEvent {
    if (this.#rows === undefined) throw new Error('there are no rows')
    return this.#rows.read(row)
  }

  #enterScope({ cluster, namespace }: EventKey): ChangeScope {
    const path = scopePath({ cluster, namespace })
    let scope = this.#knownScopes.get(path)
    if (scope === undefined) {
      const texts = { cluster: ownText(cluster), namespace: ownText(namespace) }
      scope = { ...texts, path: ownText(path), changes: 0 }
      this.#knownScopes.set(scope.path, scope)
      this.#bytes += bytesOfScope(scope)
    }
    scope.changes++
    return scope
  }

  #leaveScope(scope: ChangeScope | undefined): void {
    if (scope === undefined || --scope.changes > 0) return
    this.#knownScopes.delete(scope.path)
    this.#bytes -= bytesOfScope(scope)
  }

  /** A chunk with space for so many bytes. */
  #chunkFor(length: number, age: Age): Chunk {
    if (length > sharedBytesMax) return this.#open(length)
    const current = this.#current[age]
    if (current !== undefined && current.used + length <= chunkBytes) return current
    const opened = this.#open(chunkBytes)
    this.#current[age] = opened
    return opened
  }

  #open(size: number): Chunk {
    this.#bytes += size
    return { bytes: Buffer.allocUnsafeSlow(size), used: 0, alive: 0 }
  }

  #release(chunk: Chunk | undefined): void {
    if (chunk === undefined || --chunk.alive > 0) return
    this.#bytes -= chunk.bytes.length
    if (chunk === this.#current.new) this.#current.new = undefined
    if (chunk === this.#current.old) this.#current.old = undefined
  }
}

/** The path has the texts once more. */
function bytesOfScope({ path }: ChangeScope): number {
  return scopeBytes + 2 * path.length
}

function append(chunk: Chunk, body: Buffer): void {
  body.copy(chunk.bytes, chunk.used)
  chunk.used += body.length
  chunk.alive++
}

function copied({ bytes }: Chunk, offset: number, length: number): Buffer {
  const body = Buffer.allocUnsafe(length)
  bytes.copy(body, 0, offset, offset + length)
  return body
}

function unpackedPrevious(
  key: EventKey,
  { chunk, offset, length, ...state }: Previous,
): StoredEvent {
  return new StoredBody({ ...state, key, body: copied(chunk, offset, length) })
}
