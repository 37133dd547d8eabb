import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { eventsGroup } from '../../api/event-groups.ts'
import { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import { EventEncoders } from '../../codec/encoders/event-encoders.ts'
import { viewOf } from '../../codec/encoders/event-view.ts'
import { PROTOBUF } from '../../codec/representation.ts'
import type { Caller } from '../../gate/gate.ts'
import { readTarget } from '../../gate/target.ts'
import { ANONYMOUS } from '../../gate/user.ts'
import type { Request } from '../../http/exchange.ts'
import { aLane } from '../../lib/run-queue.fixture.ts'
import { RunQueue, turnMs } from '../../lib/run-queue.ts'
import { ListCursor } from '../../registry/read/list-cursor.ts'
import type { EventListing, ListQuery } from '../../registry/read/listing.ts'
import { versionOfChange, versionOfState } from '../../storage/resource-version.ts'
import type { EventRun, ListStretch, StoredEvent } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import type { EventApi, EventTarget } from './event-api.ts'
import { listEvents } from './list.ts'

const group = eventsGroup('events.k8s.io')
const encoders = new EventEncoders(viewOf(group), () => Date.UTC(2026, 0, 2))

function stored(index: number): StoredEvent {
  const key = { cluster: 'local', namespace: 'a', name: `e${index}` }
  const metadata = { ...key, creationTimestamp: '2026-01-01T00:00:00Z' }
  const body = Buffer.from(JSON.stringify({ metadata, note: `größe ${index}`, type: 'Normal' }))
  const version = versionOfChange(5, index)
  const versionOffset = '{"metadata":{'.length
  return new StoredBody({ key, body, version, versionOffset, writtenAtMs: 0 })
}

/** A list in pages of these sizes. A list of one page is short. */
function listing(sizes: readonly number[]): EventListing {
  let next = 0
  const pages = sizes.map((size) => Array.from({ length: size }, () => stored(next++)))
  const [first = [], ...rest] = pages
  return {
    ...head,
    first,
    isShort: rest.length === 0,
    open: () => {
      const left = [...rest]
      const page = async () => {
        const items = left.shift() ?? []
        return { items, version: head.version, more: left.length > 0, remaining: undefined }
      }
      const more = { limit: Number.POSITIVE_INFINITY, page, runs: () => undefined }
      return new ListCursor(first, left.length === 0 ? undefined : more, {})
    },
  }
}

const head = { version: versionOfState(5), continueToken: 'token', remainingItemCount: 3 }

const caller: Caller = { user: { name: 'ada', groups: [] }, authorize: async () => {} }

async function respond(sizes: readonly number[], accept: string, query = '') {
  const lister = { list: async () => listing(sizes) }
  return responseOf(
    { lister, encoders, group, runCache: new EncodedRunCache(), now: Date.now },
    accept,
    query,
  )
}

async function responseOf(api: object, accept: string, query = '', lane = aLane()) {
  const endpoint = listEvents(api as EventApi)
  const request = {
    method: 'GET',
    query: new URLSearchParams(query),
    headers: { accept },
    signal: new AbortController().signal,
    lane,
  } as Partial<Request> as Request
  const target = readTarget(
    { ...request, path: '/apis/events.k8s.io/v1/namespaces/a/events' },
    'local',
  )
  const { body, ...head } = await endpoint(request, target as EventTarget, caller)
  const isStream = typeof body !== 'string' && !(body instanceof Uint8Array)
  // Copies, since the buffer of a chunk is reused.
  const chunks: Buffer[] = []
  if (isStream) for await (const chunk of body) chunks.push(Buffer.from(chunk))
  else chunks.push(Buffer.from(body))
  return { ...head, isStream, text: Buffer.concat(chunks).toString('latin1') }
}

/** Lists seven events, six of them in three runs, and counts the events of runs that are read. */
class RunLister {
  readonly runs: EventRun[] = [{ isPast: false }, { isPast: false }, { isPast: false }]
  readonly #events = Array.from({ length: 7 }, (_, index) => stored(index))
  read = 0

  readonly list = async (): Promise<EventListing> => ({
    ...head,
    first: [],
    isShort: false,
    open: () => new ListCursor([], this.#rest(), {}),
  })

  #rest() {
    const { version } = head
    return {
      limit: Number.POSITIVE_INFINITY,
      page: async (last: StoredEvent | undefined, limit: number) => {
        const from = this.#indexAfter(last)
        const items = this.#events.slice(from, from + limit)
        if (from < 6) this.read += items.length
        const remaining = this.#events.length - from - items.length
        return { items, version, more: remaining > 0, remaining }
      },
      runs: (last: StoredEvent | undefined) => {
        const from = this.#indexAfter(last)
        const stretches: ListStretch[] = []
        let end = 0
        for (const [index, run] of [...this.runs.slice(0, 3), undefined].entries()) {
          const count = run === undefined ? 1 : index + 1
          end += count
          const lastOf = this.#events[end - 1]
          if (end > from && lastOf !== undefined) stretches.push({ run, count, last: lastOf })
        }
        return { stretches, more: false }
      },
    }
  }

  #indexAfter(last: StoredEvent | undefined): number {
    return last === undefined ? 0 : Number(last.key.name.slice(1)) + 1
  }
}

const mediaTypes = [
  'application/json',
  'application/yaml',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
]

describe('listEvents', () => {
  test('sends the same bytes in pieces as at once, in every format', async () => {
    for (const accept of mediaTypes) {
      for (const query of ['', 'pretty=true']) {
        const whole = await respond([7], accept, query)
        assert.equal(whole.isStream, false)
        for (const sizes of [
          [3, 4],
          [1, 1, 5],
          [7, 0],
          [0, 7],
        ]) {
          const streamed = await respond(sizes, accept, query)
          assert.equal(streamed.isStream, true)
          assert.equal(streamed.text, whole.text, `${accept} ${sizes}`)
          assert.deepEqual(streamed.headers, whole.headers)
        }
      }
    }
  })

  test('sends the same bytes from cached runs, in every format', async () => {
    for (const accept of [...mediaTypes, PROTOBUF]) {
      const whole = await respond([7], accept)
      const lister = new RunLister()
      const api = { lister, encoders, group, runCache: new EncodedRunCache(), now: Date.now }
      for (let round = 0; round < 4; round++) {
        assert.equal((await responseOf(api, accept)).text, whole.text, `${accept} ${round}`)
        lister.runs[round] = { isPast: false }
      }
    }
  })

  test('reads a run until it is cached, and caches no format that contains ages', async () => {
    const reads = {
      'application/json': [6, 12, 12, 14],
      // Its size is measured before it is sent: the runs encoded for that are cached and reused.
      [PROTOBUF]: [6, 6, 6, 8],
      'application/json;as=Table;v=v1;g=meta.k8s.io': [7, 14, 21, 28],
    }
    for (const [accept, expected] of Object.entries(reads)) {
      const lister = new RunLister()
      const api = { lister, encoders, group, runCache: new EncodedRunCache(), now: Date.now }
      const counts: number[] = []
      for (let round = 0; round < 4; round++) {
        if (round === 3) lister.runs[1] = { isPast: false }
        await responseOf(api, accept)
        counts.push(lister.read)
      }
      assert.deepEqual(counts, expected, accept)
    }
  })

  test('sends an empty list the same way in one piece and in two', async () => {
    for (const accept of mediaTypes) {
      assert.equal((await respond([0, 0], accept)).text, (await respond([0], accept)).text)
    }
    const list = JSON.parse((await respond([0], 'application/json')).text)
    assert.deepEqual(list.items, [])
  })

  test('sends the version and a continue token', async () => {
    const { status, text } = await respond([2, 2], 'application/json')
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

test('charges the memory that a list retains to its user', async () => {
  const charged: unknown[] = []
  const list = async (
    pages: readonly number[],
    user: Caller['user'],
    limit?: 'user',
    sizes: readonly number[] = [3],
  ) => {
    const lister = {
      list: async ({ onStoreRead }: ListQuery) => {
        for (const bytes of pages) onStoreRead?.(bytes)
        return listing(sizes)
      },
    }
    const api = { lister, encoders, group, runCache: new EncodedRunCache(), now: Date.now }
    const memory = {
      hold: (kind: string, bytes: number) => {
        charged.push([kind, bytes])
        return limit
      },
    } as unknown as NonNullable<Request['memory']>
    const request = {
      method: 'GET',
      path: '/apis/events.k8s.io/v1/namespaces/a/events',
      query: new URLSearchParams(),
      headers: {},
      memory,
      lane: aLane(),
    } as Partial<Request> as Request
    const target = readTarget(request, 'local') as EventTarget
    return listEvents(api as unknown as EventApi)(request, target, { ...caller, user })
  }
  const { user } = caller
  assert.equal((await list([], user, 'user')).status, 200)
  assert.equal((await list([100], ANONYMOUS, 'user')).status, 200)
  assert.deepEqual(charged, [])
  assert.equal((await list([100, 50, 150], user)).status, 200)
  assert.deepEqual(charged, [
    ['response', 200],
    ['response', 100],
  ])
  await assert.rejects(list([100], user, 'user'), { code: 429 })

  charged.length = 0
  assert.equal((await list([], user, undefined, [3, 4])).status, 200)
  assert.deepEqual(charged, [['response', 3 * 300 + 256 * 1024]])
  await assert.rejects(list([], user, 'user', [3, 4]), { code: 429 })
  assert.equal((await list([], ANONYMOUS, 'user', [3, 4])).status, 200)
})

test('encodes a long list in slices of the run queue', async () => {
  let nowMs = 0
  // Each part of the list takes at least the time between two reads.
  const queue = new RunQueue({ clock: { now: () => (nowMs += turnMs / 4) } })
  const lister = { list: async () => listing(Array.from({ length: 20 }, () => 1)) }
  const api = { lister, encoders, group, runCache: new EncodedRunCache(), now: Date.now }
  await responseOf(api, 'application/yaml', '', queue.userLane('ada'))
  assert.ok(queue.turns >= 5, `${queue.turns} turns`)
})
