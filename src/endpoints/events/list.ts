import { type StatusError, tooManyRequests } from '../../api/status.ts'
import type { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import type { ListMeta } from '../../codec/encoders/event-shapes.ts'
import type { ResponseEncoder } from '../../codec/encoders/response-encoder.ts'
import { ScratchBuffer } from '../../codec/encoders/scratch-buffer.ts'
import type { Place } from '../../gate/target.ts'
import { ANONYMOUS } from '../../gate/user.ts'
import type { Chunk, Request, Response } from '../../http/exchange.ts'
import { type InLane, laneOf } from '../../lib/run-queue.ts'
import { recorded, recordedNow } from '../../lib/tracing/span.ts'
import { pieceBytesUsual } from '../../registry/read/list-pieces.ts'
import type { EventListing } from '../../registry/read/listing.ts'
import { selectorWarnings } from '../../registry/read/selector-warnings.ts'
import { formatVersion } from '../../storage/resource-version.ts'
import type { ListPart } from '../../storage/storage.ts'
import { listPlan } from '../request/list-plan.ts'
import { negotiateList } from '../request/negotiate.ts'
import { warningHeader } from '../response/warnings.ts'
import { type Endpoint, encodersFor, type ReadApi } from './event-api.ts'
import { windowHeader } from './window-header.ts'

/**
 * GET …/events and …/namespaces/{namespace}/events
 *
 * A long list is streamed while it is read, at the client's pace; a short one is sent in one piece.
 * When the state cannot be read to its end the response is cut off, so that the client cannot take
 * a part for the whole.
 */
export function listEvents(api: ReadApi): Endpoint<Place> {
  const { lister, runCache, mirrored } = api
  return async (request, target, { user }) => {
    const representation = negotiateList(request)
    const encoder = encodersFor(api, target.cluster).response(representation)
    const order = representation.as === 'table' ? api.tableOrder : 'key'
    const plan = listPlan(target, { order, nowMs: api.now() })
    const { signal } = request
    const lane = laneOf(request)
    const listing = await recorded(request.span, 'registry list', (span) =>
      lister.list({
        ...plan,
        pieceItems: encoder.entriesPerChunk,
        pieceBytes: encoder.bytesPerChunk,
        recall: encoder.cacheable && ((run) => runCache.find(encoder, run)),
        onStoreRead: user === ANONYMOUS ? undefined : storeCharge(request),
        signal,
        lane,
        span,
      }),
    )
    if (listing.whole === undefined && user !== ANONYMOUS) chargeStream(request, listing)
    const warning = warningHeader([
      ...(mirrored?.warnings(target.cluster) ?? []),
      ...selectorWarnings(plan.selector?.requires),
    ])
    const headers = await windowHeader(api, target, lane)
    const entered = listing.whole && lane.enter(signal)
    if (entered !== undefined) {
      await entered
      signal.throwIfAborted()
    }
    return recordedNow(request.span, 'encode', () =>
      listResponse(encoder, listing, { runCache, warning, headers, lane, signal }),
    )
  }
}

/** A list that waits for its client gives its slot back, so what it retains counts as memory. */
function chargeStream({ memory }: Request, { retainedItems }: EventListing): void {
  const bytes = retainedItems * RETAINED_EVENT_BYTES + pieceBytesUsual
  if (memory?.hold('response', bytes) !== undefined) throw tooManyLists()
}

/** An event of a page, without its body, which is in memory anyway. */
const RETAINED_EVENT_BYTES = 300

function tooManyLists(): StatusError {
  return tooManyRequests(
    'too many long lists are open for this user: read or close them, or list in smaller pages, then retry',
    RETRY_LIST_SECONDS,
  )
}

/**
 * Pages that are read from etcd are read for one client alone, so the largest of them is charged to
 * the user until the list ends. Anonymous clients have no account; the slots of lists limit them.
 */
function storeCharge({ memory }: Request): (bytes: number) => void {
  let charged = 0
  return (bytes) => {
    const held = bytes * STORE_COPIES
    if (held <= charged) return
    if (memory?.hold('response', held - charged) !== undefined) throw tooManyStoreLists()
    charged = held
  }
}

/** Two pages, the first and the current one: 36 such lists with pages of 3.5 MB held 245 MiB. */
const STORE_COPIES = 2

function tooManyStoreLists(): StatusError {
  return tooManyRequests(
    'too many lists that are read from etcd are open for this user: read or close them, then retry',
    RETRY_LIST_SECONDS,
  )
}

/** About as long as it takes until a response that is not read is cut. */
const RETRY_LIST_SECONDS = 10

export function listResponse(
  encoder: ResponseEncoder,
  listing: EventListing,
  options: InLane & {
    readonly runCache: EncodedRunCache
    readonly warning: string | undefined
    readonly headers?: Response['headers'] | undefined
  },
): Response {
  const meta: ListMeta = {
    resourceVersion: formatVersion(listing.version),
    continue: listing.continueToken,
    remainingItemCount: listing.remainingItemCount,
  }
  const { warning } = options
  const headers = {
    'content-type': encoder.contentType,
    ...(warning && { warning }),
    ...options.headers,
  }
  const { whole } = listing
  if (whole === undefined) {
    const body = streamed(encoder, meta, { ...options, listing })
    return { status: 200, headers, body, lendsChunks: true }
  }
  using _slices = options.lane.slices()
  const entries = whole.length === 0 ? '' : encoder.listEntries(whole, 0)
  const parts = [
    encoder.listHead(meta, Buffer.byteLength(entries)),
    entries,
    encoder.listTail(meta, whole.length),
  ]
  const isText = parts.every((part) => typeof part === 'string')
  return {
    status: 200,
    headers,
    body: isText ? parts.join('') : Buffer.concat(parts.map((part) => Buffer.from(part))),
  }
}

async function* streamed(
  encoder: ResponseEncoder,
  meta: ListMeta,
  options: InLane & { readonly listing: EventListing; readonly runCache: EncodedRunCache },
): AsyncGenerator<Chunk> {
  const { listing, signal } = options
  const encode = partEncoder(encoder, options)
  yield encoder.listHead(
    meta,
    encoder.isLengthPrefixed ? await entriesBytes(listing, { encode, signal }) : 0,
  )
  let count = 0
  for await (const parts of partsOf(listing)) {
    for (const part of parts) {
      // Not a promise for parts that are cached, or while there is time.
      const turn = encode.turn(part)
      if (turn !== undefined) await turn
      signal.throwIfAborted()
      yield encode.chunk(part, count)
      count += part.count
    }
  }
  yield encoder.listTail(meta, count)
}

/**
 * The size of all entries. Encodes the whole list once before it is sent, and keeps only what fits
 * into the cache of runs, which then is not encoded again.
 */
async function entriesBytes(
  listing: EventListing,
  { encode, signal }: { readonly encode: PartEncoder; readonly signal: AbortSignal },
): Promise<number> {
  let bytes = 0
  for await (const parts of partsOf(listing)) {
    for (const part of parts) {
      const turn = encode.turn(part)
      if (turn !== undefined) await turn
      signal.throwIfAborted()
      bytes += Buffer.byteLength(encode.chunk(part, 0))
    }
  }
  return bytes
}

function partsOf({ parts, pieces }: EventListing): AsyncIterable<readonly ListPart[]> {
  return parts ?? withoutRuns(pieces)
}

async function* withoutRuns(pieces: EventListing['pieces']): AsyncGenerator<readonly ListPart[]> {
  for await (const events of pieces) {
    const count = events.length
    if (count > 0) yield [{ run: undefined, events, count }]
  }
}

interface PartEncoder {
  /** To be awaited before the part is encoded. Undefined: it can be encoded now. */
  turn(part: ListPart): Promise<void> | undefined
  /** Encodes the part of a list that begins at `index`. The result is valid until the next call. */
  chunk(part: ListPart, index: number): Chunk
}

/** Adds each run that it encodes to the cache. */
function partEncoder(
  encoder: ResponseEncoder,
  options: InLane & { readonly runCache: EncodedRunCache },
): PartEncoder {
  const { lane, signal, runCache } = options
  const { cacheable } = encoder
  const scratch = new ScratchBuffer()
  return {
    turn: ({ known }) => (known === undefined ? lane.enter(signal) : undefined),
    chunk: (part, index) => {
      if (part.known !== undefined) return startedAt(part.known, index, cacheable?.start)
      using _slices = lane.slices()
      const { run, events } = part
      if (cacheable === undefined || run === undefined)
        return encoder.listEntries(events, index, scratch)
      const encoded = cacheable.write(events, scratch)
      runCache.add(encoder, run, encoded)
      return startedAt(encoded, index, cacheable.start)
    },
  }
}

/** The entries of a run; at the top of a list they begin with `start` instead of a separator. */
function startedAt(entries: Buffer, index: number, start = ''): Buffer {
  if (index > 0 || start === '') return entries
  return Buffer.concat([Buffer.from(start), entries.subarray(start.length)])
}
