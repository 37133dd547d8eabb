import type { AnswerForm } from '../codec/answer-form.ts'
import type { ListMeta } from '../codec/event-shapes.ts'
import { Room } from '../codec/room.ts'
import type { Chunk, Response } from '../http/exchange.ts'
import type { EventListing } from '../registry/listing.ts'
import { formatVersion } from '../storage/resource-version.ts'
import type { Endpoint, EventApi } from './event-api.ts'
import { listQuery, readOptions } from './list-query.ts'
import { negotiateList } from './negotiate.ts'

/**
 * GET …/events and …/namespaces/{namespace}/events
 *
 * Goes out as it is read, at the client's pace; a short one in one piece. When the state cannot be
 * read to its end the answer is cut off, so that nobody takes a part for the whole.
 */
export function listEvents({ lister, forms, group }: EventApi): Endpoint {
  return async (request, path) => {
    const form = forms.answer(negotiateList(request))
    const options = readOptions(request.query, path, group)
    const listing = await lister.list({
      ...listQuery(path, options),
      pieceItems: form.entriesAtOnce,
      signal: request.signal,
    })
    return listResponse(form, listing)
  }
}

function listResponse(form: AnswerForm, listing: EventListing): Response {
  const meta: ListMeta = {
    resourceVersion: formatVersion(listing.version),
    continue: listing.continueToken,
    remainingItemCount: listing.remainingItemCount,
  }
  const headers = { 'content-type': form.contentType }
  const { whole } = listing
  if (whole === undefined) {
    return { status: 200, headers, body: streamed(form, meta, listing), lendsChunks: true }
  }
  const entries = whole.length === 0 ? '' : form.listEntries(whole, 0)
  const parts = [
    form.listHead(meta, Buffer.byteLength(entries)),
    entries,
    form.listTail(meta, whole.length),
  ]
  const isText = parts.every((part) => typeof part === 'string')
  return {
    status: 200,
    headers,
    body: isText ? parts.join('') : Buffer.concat(parts.map((part) => Buffer.from(part))),
  }
}

/** Goes through the whole list once before it is sent, without keeping any of it. */
async function entriesBytes(form: AnswerForm, listing: EventListing): Promise<number> {
  let bytes = 0
  for await (const items of listing.pieces) {
    if (items.length > 0) bytes += Buffer.byteLength(form.listEntries(items, 0))
  }
  return bytes
}

async function* streamed(
  form: AnswerForm,
  meta: ListMeta,
  listing: EventListing,
): AsyncGenerator<Chunk> {
  yield form.listHead(meta, form.isMeasured ? await entriesBytes(form, listing) : 0)
  const room = new Room()
  let count = 0
  for await (const items of listing.pieces) {
    if (items.length > 0) yield form.listEntries(items, count, room)
    count += items.length
  }
  yield form.listTail(meta, count)
}
