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
import { type ListPiece, PIECE_BYTES } from '../../registry/read/list-cursor.ts'
import type { EventListing } from '../../registry/read/listing.ts'
import { formatVersion } from '../../storage/resource-version.ts'
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
        readsArchive: true,
        pieceItems: encoder.entriesPerChunk,
        pieceBytes: encoder.bytesPerChunk,
        onStoreRead: user === ANONYMOUS ? undefined : storeCharge(request),
        signal,
        lane,
        span,
      }),
    )
    if (!listing.isShort && user !== ANONYMOUS) chargeStream(request, listing)
    const warning = warningHeader([
      ...(mirrored?.warnings(target.cluster) ?? []),
      ...plan.warnings,
      ...cutWarning(listing),
    ])
    const headers = await windowHeader(api, target, lane)
    const entered = listing.isShort ? lane.enter(signal) : undefined
    if (entered !== undefined) {
      await entered
      signal.throwIfAborted()
    }
    const { shardSelector } = plan
    return recordedNow(request.span, 'encode', () =>
      listResponse(encoder, listing, { runCache, warning, headers, shardSelector, lane, signal }),
    )
  }
}

function cutWarning({ cut, continueToken }: EventListing): readonly string[] {
  if (cut === undefined) return []
  const { afterMs } = cut
  const reached = afterMs === undefined ? 'in part' : `up to ${new Date(afterMs).toISOString()}`
  const next = continueToken === undefined ? '' : 'continue the list, or '
  return [
    `history was searched only ${reached} in the time that a request has: ${next}narrow it by namespace, object, reason or a shorter time`,
  ]
}

/** A list that waits for its client gives its slot back, so what it retains counts as memory. */
function chargeStream({ memory }: Request, { first }: EventListing): void {
  const bytes = first.length * RETAINED_EVENT_BYTES + PIECE_BYTES
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

export interface ListResponseOptions extends InLane {
  readonly runCache: EncodedRunCache
  readonly warning: string | undefined
  readonly headers?: Response['headers'] | undefined
  readonly shardSelector?: string | undefined
}

export function listResponse(
  encoder: ResponseEncoder,
  listing: EventListing,
  options: ListResponseOptions,
): Response {
  const { warning, shardSelector } = options
  const meta: ListMeta = {
    resourceVersion: formatVersion(listing.version),
    continue: listing.continueToken,
    remainingItemCount: listing.remainingItemCount,
    shardInfo: shardSelector === undefined ? undefined : { selector: shardSelector },
  }
  const headers = {
    'content-type': encoder.contentType,
    ...(warning && { warning }),
    ...options.headers,
  }
  if (!listing.isShort) {
    const body = streamed(encoder, meta, { ...options, listing })
    return { status: 200, headers, body, lendsChunks: true }
  }
  using _slices = options.lane.slices()
  const { first } = listing
  const entries = first.length === 0 ? '' : encoder.listEntries(first, 0)
  const parts = [
    encoder.listHead(meta, Buffer.byteLength(entries)),
    entries,
    encoder.listTail(meta, first.length),
  ]
  const isText = parts.every((part) => typeof part === 'string')
  return {
    status: 200,
    headers,
    body: isText ? parts.join('') : Buffer.concat(parts.map((part) => Buffer.from(part))),
  }
}

type StreamOptions = InLane & {
  readonly listing: EventListing
  readonly runCache: EncodedRunCache
}

async function* streamed(
  encoder: ResponseEncoder,
  meta: ListMeta,
  options: StreamOptions,
): AsyncGenerator<Chunk> {
  const bytes = encoder.isLengthPrefixed === true ? await entriesBytes(encoder, options) : 0
  yield encoder.listHead(meta, bytes)
  const count = yield* entryChunks(encoder, options)
  yield encoder.listTail(meta, count)
}

/**
 * The size of all entries. Encodes the whole list once before it is sent, and retains only what fits
 * into the cache of runs, which is then not encoded again.
 */
async function entriesBytes(encoder: ResponseEncoder, options: StreamOptions): Promise<number> {
  let bytes = 0
  for await (const chunk of entryChunks(encoder, options)) bytes += Buffer.byteLength(chunk)
  return bytes
}

/**
 * Encodes the list, or takes the bytes of its runs from the cache. A chunk is valid until the next
 * one is requested. Returns the number of entries.
 */
async function* entryChunks(
  encoder: ResponseEncoder,
  { listing, runCache, lane, signal }: StreamOptions,
): AsyncGenerator<Chunk, number> {
  const { cacheable } = encoder
  const cursor = listing.open()
  const scratch = new ScratchBuffer()
  let index = 0
  const encode = ({ events, run }: ListPiece): Chunk => {
    using _slices = lane.slices()
    if (cacheable === undefined || run === undefined) {
      return encoder.listEntries(events, index, scratch)
    }
    const encoded = cacheable.write(events, scratch)
    runCache.add(encoder, run, encoded)
    return startedAt(encoded, index, cacheable.start)
  }
  for (;;) {
    const run = cacheable && cursor.nextRun()
    const cached = run && runCache.find(encoder, run.run)
    if (run !== undefined && cached !== undefined) {
      cursor.skip(run)
      yield startedAt(cached, index, cacheable?.start)
      index += run.count
      continue
    }
    const piece = await cursor.read()
    if (piece.events.length === 0) return index
    // Undefined, and not awaited, while there is time.
    const turn = lane.enter(signal)
    if (turn !== undefined) await turn
    signal.throwIfAborted()
    yield encode(piece)
    index += piece.events.length
  }
}

/** The entries of a run; at the top of a list they begin with `start` instead of a separator. */
function startedAt(entries: Buffer, index: number, start = ''): Buffer {
  if (index > 0 || start === '') return entries
  return Buffer.concat([Buffer.from(start), entries.subarray(start.length)])
}
