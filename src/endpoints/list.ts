import { setImmediate } from 'node:timers/promises'
import type { AnswerForm } from '../codec/answer-form.ts'
import type { ListMeta } from '../codec/event-shapes.ts'
import type { KeptEntries } from '../codec/kept-entries.ts'
import { Room } from '../codec/room.ts'
import type { Chunk, Response } from '../http/exchange.ts'
import type { EventListing } from '../registry/listing.ts'
import { formatVersion } from '../storage/resource-version.ts'
import type { ListPart } from '../storage/storage.ts'
import type { Endpoint, EventApi } from './event-api.ts'
import { listQuery, readOptions } from './list-query.ts'
import { negotiateList } from './negotiate.ts'

/**
 * GET …/events and …/namespaces/{namespace}/events
 *
 * Goes out as it is read, at the client's pace; a short one in one piece. When the state cannot be
 * read to its end the answer is cut off, so that nobody takes a part for the whole.
 */
export function listEvents({ lister, forms, group, kept }: EventApi): Endpoint {
  return async (request, path) => {
    const form = forms.answer(negotiateList(request))
    const options = readOptions(request.query, path, group)
    const listing = await lister.list({
      ...listQuery(path, options),
      pieceItems: form.entriesAtOnce,
      recall: form.lasting && ((run) => kept.find(form, run)),
      signal: request.signal,
    })
    return listResponse(form, listing, kept)
  }
}

function listResponse(form: AnswerForm, listing: EventListing, kept: KeptEntries): Response {
  const meta: ListMeta = {
    resourceVersion: formatVersion(listing.version),
    continue: listing.continueToken,
    remainingItemCount: listing.remainingItemCount,
  }
  const headers = { 'content-type': form.contentType }
  const { whole } = listing
  if (whole === undefined) {
    const body = streamed(form, meta, { listing, kept })
    return { status: 200, headers, body, lendsChunks: true }
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

async function* streamed(
  form: AnswerForm,
  meta: ListMeta,
  { listing, kept }: { readonly listing: EventListing; readonly kept: KeptEntries },
): AsyncGenerator<Chunk> {
  const print = printer(form, kept)
  yield form.listHead(meta, form.isMeasured ? await entriesBytes(listing, print) : 0)
  let count = 0
  for await (const parts of partsOf(listing)) {
    for (const part of parts) {
      yield print(part, count)
      count += part.count
    }
  }
  yield form.listTail(meta, count)
}

/**
 * Goes through the whole list once before it is sent. Holds on to none of it but what can be kept,
 * which then need not be printed again.
 */
async function entriesBytes(listing: EventListing, print: Printer): Promise<number> {
  let bytes = 0
  for await (const parts of partsOf(listing)) {
    for (const part of parts) {
      bytes += Buffer.byteLength(print(part, 0))
      // Sending would give others their turn.
      if (part.known === undefined) await setImmediate()
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

/** The part of a list that begins at `index`. Good until the next is printed. */
type Printer = (part: ListPart, index: number) => Chunk

/** What can be known the next time is offered to be kept. */
function printer(form: AnswerForm, kept: KeptEntries): Printer {
  const { lasting } = form
  const room = new Room()
  return (part, index) => {
    if (part.known !== undefined) return placed(part.known, index, lasting?.start)
    const { run, events } = part
    if (lasting === undefined || run === undefined) return form.listEntries(events, index, room)
    const printed = lasting.write(events, room)
    kept.add(form, run, printed)
    return placed(printed, index, lasting.start)
  }
}

function placed(entries: Buffer, index: number, start = ''): Buffer {
  if (index > 0 || start === '') return entries
  return Buffer.concat([Buffer.from(start), entries.subarray(start.length)])
}
