import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PROTOBUF } from '../../src/codec/representation.ts'
import { type EventApiUnderTest, withEventApi } from '../support/event-api.ts'
import { makeEvent } from '../support/event-client.ts'

const EVENTS = 1_800
const namespaces = ['a', 'a-b', 'b']
/** All events match it, and lists that choose are made without what is kept. */
const everyEvent = { labelSelector: '!nobody-has-this' }
const forms = [
  'application/json',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  PROTOBUF,
]

describe('lists out of what is kept of earlier ones', () => {
  let api: EventApiUnderTest

  withEventApi({
    // Few states: what an earlier list has read may be gone before the next.
    options: { memoryBounds: { statesMax: 4, stateAgeMsMax: 60_000, stateBytesMax: 1024 * 1024 } },
    begin: async (started) => {
      api = started
      for (const namespace of namespaces) await api.fill(namespace, EVENTS / namespaces.length)
    },
  })

  /** Every so often a new one, else another note for one that is there, or its end. */
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
    test(`are found where they were kept, and nothing is kept twice: ${accept}`, async () => {
      const { kept } = api
      const list = () => api.call({ at: '', headers: { accept } })
      const before = kept.bytes
      await list()
      await list()
      const { bytes, finds } = kept
      const { text } = await list()
      // All of it but its head, its tail, and what takes more than a byte.
      assert.ok(bytes - before > text.length * 0.9, `${bytes - before} bytes of ${text.length}`)
      assert.ok(kept.finds > finds)
      assert.equal(kept.bytes, bytes)
    })
  }

  test('are the same as lists that are made anew, whatever was written in between', async () => {
    for (let n = 0; n < 90; n++) {
      await write(n)
      await check(n)
    }
  })

  test('are of one state each, amid writes', async () => {
    let isOver = false
    const writing = (async () => {
      for (let n = 90; !isOver; n++) await write(n)
    })()
    try {
      // In JSON, which says of which state it is.
      for (let n = 0; n < 150; n += 3) await check(n)
    } finally {
      isOver = true
      await writing
    }
  })
})
