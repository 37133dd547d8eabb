import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PROTOBUF } from '../../../src/codec/representation.ts'
import { type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { makeEvent } from '../../support/wire-event.ts'

const EVENTS = 1_800
const namespaces = ['a', 'a-b', 'b']
/** Matches all events. Lists with a selector do not use the cache of encoded runs. */
const everyEvent = { labelSelector: '!missing' }
const forms = [
  'application/json',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  PROTOBUF,
]

describe('lists from cached runs', () => {
  let api: EventApiUnderTest

  withEventApi({
    // Few snapshots, so that the snapshot of an earlier list may be evicted before the next
    // list.
    options: { memoryBounds: { statesMax: 4, stateAgeMsMax: 60_000, stateBytesMax: 1024 * 1024 } },
    begin: async (started) => {
      api = started
      for (const namespace of namespaces) await api.fill(namespace, EVENTS / namespaces.length)
    },
  })

  /** Creates, deletes or annotates an event, in rotation. */
  async function write(n: number): Promise<void> {
    const namespace = namespaces[n % namespaces.length] ?? ''
    const name = `e-${String((n * 7919) % 600).padStart(6, '0')}`
    const at = `${namespace}/${name}`
    if (n % 3 === 0) {
      const body = makeEvent(namespace, name)
      await api.call({ method: 'POST', at: namespace, body })
    } else if (n % 3 === 1) await api.call({ method: 'DELETE', at })
    else {
      const headers = { 'content-type': 'application/merge-patch+json' }
      const body = { metadata: { annotations: { written: String(n) } } }
      await api.call({ method: 'PATCH', at, headers, body })
    }
  }

  async function check(n: number): Promise<void> {
    const at = ['', '', 'a', 'b'][n % 4] ?? ''
    const headers = { accept: forms[n % forms.length] ?? '' }
    const { text, status, json } = await api.call({ at, headers })
    assert.equal(status, 200)
    const resourceVersion = json?.metadata.resourceVersion
    const query =
      resourceVersion === undefined ? {} : { resourceVersion, resourceVersionMatch: 'Exact' }
    const made = await api.call({ at, headers, query: { ...query, ...everyEvent } })
    assert.equal(made.status, 200, made.text)
    assert.ok(text === made.text, `${headers.accept} after ${n} writes`)
  }

  for (const accept of forms) {
    test(`a list is served from cached runs, and nothing is cached twice: ${accept}`, async () => {
      const { runCache } = api
      const list = () => api.call({ at: '', headers: { accept } })
      const before = runCache.bytes
      await list()
      await list()
      const { bytes, hits } = runCache
      const { text } = await list()
      // All but the head, the tail and multi-byte characters.
      assert.ok(bytes - before > text.length * 0.9, `${bytes - before} bytes of ${text.length}`)
      assert.ok(runCache.hits > hits)
      assert.equal(runCache.bytes, bytes)
    })
  }

  test('a list from cached runs equals one that is encoded anew, after any writes', async () => {
    for (let n = 0; n < 90; n++) {
      await write(n)
      await check(n)
    }
  })

  test('a list from cached runs shows one snapshot during concurrent writes', async () => {
    let isOver = false
    const writing = (async () => {
      for (let n = 90; !isOver; n++) await write(n)
    })()
    try {
      // In JSON, which contains the version of the snapshot.
      for (let n = 0; n < 150; n += 3) await check(n)
    } finally {
      isOver = true
      await writing
    }
  })
})
