import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventsGroup } from '../api/event-groups.ts'
import { EventForms } from '../codec/event-forms.ts'
import { viewOf } from '../codec/event-view.ts'
import { KeptEntries } from '../codec/kept-entries.ts'
import { PROTOBUF } from '../codec/representation.ts'
import type { Caller } from '../gate/gate.ts'
import type { Request } from '../http/exchange.ts'
import type { EventListing, ListQuery } from '../registry/listing.ts'
import { versionOfChange, versionOfState } from '../storage/resource-version.ts'
import type { ListPart, StoredEvent } from '../storage/storage.ts'
import { StoredBody } from '../storage/stored-form.ts'
import type { EventApi } from './event-api.ts'
import { listEvents } from './list.ts'

const group = eventsGroup('events.k8s.io')
const forms = new EventForms(viewOf(group), () => Date.UTC(2026, 0, 2))

function stored(index: number): StoredEvent {
  const key = { namespace: 'a', name: `e${index}` }
  const metadata = { ...key, creationTimestamp: '2026-01-01T00:00:00Z' }
  const body = Buffer.from(JSON.stringify({ metadata, note: `größe ${index}`, type: 'Normal' }))
  const version = versionOfChange(5, index)
  const versionOffset = '{"metadata":{'.length
  return new StoredBody({ key, body, version, versionOffset, writtenAtMs: 0 })
}

/** A list in these pieces; in one, it is known as a whole. */
function listing(sizes: readonly number[]): EventListing {
  let next = 0
  const pieces = sizes.map((size) => Array.from({ length: size }, () => stored(next++)))
  return {
    version: versionOfState(5),
    continueToken: 'token',
    remainingItemCount: 3,
    pieces: (async function* () {
      yield* pieces
    })(),
    whole: pieces.length === 1 ? pieces[0] : undefined,
  }
}

const caller: Caller = { user: { name: 'ada', groups: [] }, authorize: async () => {} }

async function answer(sizes: readonly number[], accept: string, query = '') {
  const lister = { list: async () => listing(sizes) }
  return answerOf({ lister, forms, group, kept: new KeptEntries() }, accept, query)
}

async function answerOf(api: object, accept: string, query = '') {
  const endpoint = listEvents(api as EventApi)
  const request = {
    method: 'GET',
    query: new URLSearchParams(query),
    headers: { accept },
    signal: new AbortController().signal,
  } as Partial<Request> as Request
  const path = { kind: 'collection', namespace: 'a', isWatchPath: false } as const
  const { body, ...head } = await endpoint(request, path, caller)
  const isStream = typeof body !== 'string' && !(body instanceof Uint8Array)
  // Copies: chunks are only lent.
  const chunks: Buffer[] = []
  if (isStream) for await (const chunk of body) chunks.push(Buffer.from(chunk))
  else chunks.push(Buffer.from(body))
  return { ...head, isStream, text: Buffer.concat(chunks).toString('latin1') }
}

/** A lister of seven events in three runs, that counts what it has to read. */
class RunLister {
  readonly runs = [{ isPast: false }, { isPast: false }, { isPast: false }]
  read = 0

  readonly list = async ({ recall }: ListQuery): Promise<EventListing> => ({
    ...listing([3, 4]),
    parts: recall && { [Symbol.asyncIterator]: () => this.#parts(recall) },
  })

  async *#parts(recall: NonNullable<ListQuery['recall']>): AsyncGenerator<readonly ListPart[]> {
    const parts: ListPart[] = []
    let next = 0
    for (const [index, run] of this.runs.entries()) {
      const count = index + 1
      const known = recall(run)
      const events = Array.from({ length: count }, () => stored(next++))
      if (known === undefined) this.read += count
      parts.push(known === undefined ? { run, events, count } : { known, count })
    }
    yield parts
    yield [{ run: undefined, events: [stored(next)], count: 1 }]
  }
}

const mediaTypes = [
  'application/json',
  'application/yaml',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
]

describe('listEvents', () => {
  test('pieces make the same bytes as the whole, in every form', async () => {
    for (const accept of mediaTypes) {
      for (const query of ['', 'pretty=true']) {
        const whole = await answer([7], accept, query)
        assert.equal(whole.isStream, false)
        for (const sizes of [
          [3, 4],
          [1, 1, 5],
          [7, 0],
          [0, 7],
        ]) {
          const streamed = await answer(sizes, accept, query)
          assert.equal(streamed.isStream, true)
          assert.equal(streamed.text, whole.text, `${accept} ${sizes}`)
          assert.deepEqual(streamed.headers, whole.headers)
        }
      }
    }
  })

  test('what is kept of runs makes the same bytes, in every form', async () => {
    for (const accept of [...mediaTypes, PROTOBUF]) {
      const whole = await answer([7], accept)
      const lister = new RunLister()
      const api = { lister, forms, group, kept: new KeptEntries() }
      for (let round = 0; round < 4; round++) {
        assert.equal((await answerOf(api, accept)).text, whole.text, `${accept} ${round}`)
        lister.runs[round] = { isPast: false }
      }
    }
  })

  test('a run is read until it is kept, unless the form has ages in it', async () => {
    const reads = {
      'application/json': [6, 12, 12, 14],
      // Before it is written it is measured, and what that prints is kept for the writing.
      [PROTOBUF]: [6, 6, 6, 8],
      'application/json;as=Table;v=v1;g=meta.k8s.io': [0, 0, 0, 0],
    }
    for (const [accept, expected] of Object.entries(reads)) {
      const lister = new RunLister()
      const api = { lister, forms, group, kept: new KeptEntries() }
      const counts: number[] = []
      for (let round = 0; round < 4; round++) {
        if (round === 3) lister.runs[1] = { isPast: false }
        await answerOf(api, accept)
        counts.push(lister.read)
      }
      assert.deepEqual(counts, expected, accept)
    }
  })

  test('an empty list is one, in one piece or in two', async () => {
    for (const accept of mediaTypes) {
      assert.equal((await answer([0, 0], accept)).text, (await answer([0], accept)).text)
    }
    const list = JSON.parse((await answer([0], 'application/json')).text)
    assert.deepEqual(list.items, [])
  })

  test('it says of what state it is, and where to go on', async () => {
    const { status, text } = await answer([2, 2], 'application/json')
    const { kind, metadata, items } = JSON.parse(text)
    assert.equal(status, 200)
    assert.equal(kind, 'EventList')
    assert.deepEqual(metadata, {
      resourceVersion: '5999',
      continue: 'token',
      remainingItemCount: 3,
    })
    assert.deepEqual(
      items.map(
        ({ metadata: { resourceVersion } }: Awaited<ReturnType<typeof JSON.parse>>) =>
          resourceVersion,
      ),
      ['5000', '5001', '5002', '5003'],
    )
  })
})
