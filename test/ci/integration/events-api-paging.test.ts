import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { protobufTree } from '../../support/protobuf-tree.ts'
import { shardOf, shardSelector } from '../../support/shards.ts'
import { statesOf } from '../../support/watch-sequence.ts'
import { makeEvent, type WireEvent, type WireList } from '../../support/wire-event.ts'

const EVENTS = 10_100
/**
 * They share a prefix, and their next character sorts before or after the slash that follows a
 * namespace in a key.
 */
const alike = ['a', 'a-b', 'ab', 'aa', 'a0']

describe('lists in pages', () => {
  let api: EventApiUnderTest

  withEventApi({
    begin: async (started) => {
      api = started
      await api.fill('many', EVENTS, (index) => ({
        labels: {
          third: String(index % 3 === 0),
          tenth: String(index % 10 === 0),
          rare: String(index % 1000 === 7),
        },
      }))
      for (const namespace of alike) {
        for (const name of ['x', 'y', 'z']) {
          const body = makeEvent(namespace, name)
          assert.equal((await api.call({ method: 'POST', at: namespace, body })).status, 201)
        }
      }
    },
  })

  /** Reads all pages; `limits` are used in rotation. */
  async function walk(
    at: string,
    limits: readonly number[],
    query: Readonly<Record<string, string>> = {},
  ): Promise<{ readonly items: readonly WireEvent[]; readonly sizes: readonly number[] }> {
    const items: WireEvent[] = []
    const sizes: number[] = []
    const versions = new Set<string>()
    let token = ''
    for (let page = 0; page === 0 || token !== ''; page++) {
      const limit = limits[page % limits.length] ?? 1
      const { status, json } = await api.call({ at, query: { ...query, limit, continue: token } })
      assert.equal(status, 200)
      assert.ok(json.items.length <= limit)
      items.push(...json.items)
      sizes.push(json.items.length)
      versions.add(json.metadata.resourceVersion)
      token = json.metadata.continue ?? ''
      assert.ok(token === '' || json.items.length === limit, 'all pages but the last are full')
      const isSelected = Object.keys(query).some((name) => name.endsWith('Selector'))
      checkRemaining(json.metadata, { isSelected, at, items })
    }
    assert.equal(versions.size, 1, 'all pages show one snapshot')
    return { items, sizes }
  }

  function checkRemaining(
    metadata: { readonly continue?: string; readonly remainingItemCount?: number },
    list: {
      readonly isSelected: boolean
      readonly at: string
      readonly items: readonly WireEvent[]
    },
  ): void {
    const isCut = metadata.continue !== undefined
    const total = list.at === 'many' ? EVENTS : EVENTS + 3 * alike.length
    const expected = isCut && !list.isSelected ? total - list.items.length : undefined
    assert.equal(metadata.remainingItemCount, expected)
  }

  test('pages of any size add up to the whole list', async () => {
    const whole = await api.call({ at: 'many' })
    assert.equal(whole.json.items.length, EVENTS)
    assert.equal(whole.json.metadata.continue, undefined)
    const all = statesOf(whole.json.items).join()
    for (const limit of [499, 500, 501, 10_000, 10_001, EVENTS, 1_000_000]) {
      const { items, sizes } = await walk('many', [limit])
      assert.equal(sizes.length, Math.ceil(EVENTS / limit), `limit ${limit}`)
      assert.equal(statesOf(items).join(), all, `limit ${limit}`)
    }
  })

  test('very small pages are correct', async () => {
    for (const limit of [1, 2]) {
      const query = { labelSelector: 'rare=true' }
      const { items } = await walk('many', [limit], query)
      const whole = await api.call({ at: 'many', query })
      assert.equal(whole.json.items.length, 11)
      assert.deepEqual(items, whole.json.items)
    }
    const first = await api.call({ at: 'many', query: { limit: 1 } })
    assert.equal(first.json.metadata.remainingItemCount, EVENTS - 1)
  })

  test('a token may be used with another limit than that of its page', async () => {
    const { items } = await walk('many', [1, 700, 2, 10_001])
    assert.equal(items.length, EVENTS)
    assert.equal(new Set(items.map(({ metadata }) => metadata.name)).size, EVENTS)
  })

  test('a selector is applied before the limit', async () => {
    for (const limit of [500, 501, 10_001]) {
      const query = { labelSelector: 'third=true' }
      const { items } = await walk('many', [limit], query)
      assert.equal(items.length, Math.ceil(EVENTS / 3))
      assert.ok(items.every(({ metadata }) => metadata.labels?.['third'] === 'true'))
    }
  })

  test('shards divide a list, in pages of any size', async () => {
    for (const [shards, limit] of [
      [2, 10_001],
      [3, 1000],
      [7, 501],
    ] as const) {
      const names: string[] = []
      for (let index = 0; index < shards; index++) {
        const { items } = await walk('many', [limit], {
          shardSelector: shardSelector(index, shards),
        })
        assert.ok(items.every(({ metadata }) => shardOf(metadata.uid ?? '', shards) === index))
        names.push(...items.map(({ metadata }) => metadata.name))
      }
      assert.deepEqual([names.length, new Set(names).size], [EVENTS, EVENTS])
    }
  })

  test('shards by namespace have all events of a namespace', async () => {
    const field = 'object.metadata.namespace'
    for (let index = 0; index < 3; index++) {
      const query = { shardSelector: shardSelector(index, 3, field) }
      const { json } = await api.call({ at: '', query })
      const listed = new Set(json.items.map(({ metadata }: WireEvent) => metadata.namespace))
      const wanted = ['many', ...alike].filter((namespace) => shardOf(namespace, 3) === index)
      assert.deepEqual([...listed].toSorted(), wanted.toSorted())
    }
  })

  // shards-are-served
  test('a list of a shard has its selector, in every form', async () => {
    const whole = shardSelector(0, 1)
    const query = { shardSelector: ` ${whole.replaceAll(' ', '')}||${whole}`, limit: 2 }
    const shardInfo = { selector: `${whole} || ${whole}` }
    for (const accept of [
      'application/json',
      tableType,
      'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
    ]) {
      const { json } = await api.call({ at: 'many', query, headers: { accept } })
      assert.deepEqual(json.metadata.shardInfo, shardInfo, accept)
      assert.equal((json.items ?? json.rows).length, 2)
    }
    const yaml = await api.call({ at: 'many', query, headers: { accept: 'application/yaml' } })
    assert.match(yaml.text, /^ {2}shardInfo:\n {4}selector: shardRange\(object\.metadata\.uid, /m)
    const protobuf = { accept: 'application/vnd.kubernetes.protobuf' }
    const { body } = await api.ask({ at: 'many', query, headers: protobuf })
    const { metadata } = protobufTree(body as Buffer, false) as unknown as WireList
    assert.deepEqual(metadata.shardInfo, shardInfo)
    const { json } = await api.call({ at: 'many', query: { limit: 2 } })
    assert.equal(json.metadata.shardInfo, undefined)
  })

  test('a shard can be deleted', async () => {
    await api.fill('divided', 100)
    const query = { shardSelector: shardSelector(1, 2) }
    assert.equal((await api.call({ method: 'DELETE', at: 'divided', query })).status, 200)
    const { json } = await api.call({ at: 'divided' })
    const shards = json.items.map(({ metadata }: WireEvent) => shardOf(metadata.uid ?? '', 2))
    assert.deepEqual([...new Set(shards)], [0])
    assert.ok(shards.length > 25 && shards.length < 75, `${shards.length} of 100 are left`)
    assert.equal((await api.call({ method: 'DELETE', at: 'divided' })).status, 200)
  })

  test('an invalid shard selector is a 400 for lists, watches and deletes', async () => {
    for (const call of [{}, { query: { watch: true } }, { method: 'DELETE' }]) {
      const query = { ...call.query, shardSelector: 'uid' }
      const { status, json } = await api.call({ ...call, at: 'many', query })
      assert.equal(status, 400)
      assert.match(json.message, /^invalid shard selector: expected shardRange\(/)
    }
  })

  test('all namespaces are paged through in one order', async () => {
    const { items } = await walk('', [2_997])
    assert.equal(items.length, EVENTS + 3 * alike.length)
    const keys = items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
    const sorted = keys.toSorted((one, other) =>
      Buffer.compare(Buffer.from(one), Buffer.from(other)),
    )
    assert.deepEqual(keys, sorted)
  })

  test('namespaces with a common prefix are kept apart', async () => {
    for (const namespace of alike) {
      for (const query of [{}, { limit: 2 }, { fieldSelector: 'reason=Tested' }]) {
        const names: string[] = []
        let token = ''
        do {
          const { json } = await api.call({ at: namespace, query: { ...query, continue: token } })
          names.push(...json.items.map((item: WireEvent) => namesOf(item)))
          token = json.metadata.continue ?? ''
        } while (token !== '')
        assert.deepEqual(
          names,
          ['x', 'y', 'z'].map((name) => `${namespace}/${name}`),
        )
      }
      const everywhere = await api.call({
        at: '',
        query: { fieldSelector: `metadata.namespace=${namespace}` },
      })
      assert.equal(everywhere.json.items.length, 3)
    }
  })

  test('an impossible namespace is empty', async () => {
    for (const namespace of ['a.b', '.', '..', 'A', '\0', 'ä', ' ']) {
      const { status, json } = await api.call({ at: namespace })
      assert.deepEqual([status, json.items], [200, []], namespace)
    }
  })

  test('a long list is streamed, with the same content for fast and slow readers', async () => {
    for (const accept of ['application/json', tableType, 'application/yaml']) {
      for (const pretty of ['true', 'false']) {
        const query = { labelSelector: 'tenth=true', pretty }
        const read = async (more: object): Promise<readonly Buffer[]> => {
          const asked = { at: 'many', query: { ...query, ...more }, headers: { accept } }
          const { body } = await api.ask(asked)
          const chunks: Buffer[] = []
          for await (const chunk of body as AsyncIterable<Buffer>) chunks.push(Buffer.from(chunk))
          return chunks
        }
        const [bit, atOnce] = [await read({}), await read({ limit: 9_000 })]
        assert.ok(bit.length > 4 && atOnce.length > 4, accept)
        assert.ok(Buffer.concat(bit).equals(Buffer.concat(atOnce)), accept)
      }
    }
  })

  test('a token of one scope is rejected in another', async () => {
    const { json } = await api.call({ at: 'a', query: { limit: 1 } })
    const other = await api.call({ at: 'ab', query: { continue: json.metadata.continue } })
    assert.ok(other.status === 400 || other.json.items.every((item: WireEvent) => isIn('ab', item)))
  })
})

const tableType = 'application/json;as=Table;v=v1;g=meta.k8s.io'

function namesOf({ metadata }: WireEvent): string {
  return `${metadata.namespace}/${metadata.name}`
}

function isIn(namespace: string, { metadata }: WireEvent): boolean {
  return metadata.namespace === namespace
}

describe('lists of large events at a version that is not in memory', () => {
  const LARGE = 40
  let api: EventApiUnderTest
  let version: string

  withEventApi({
    begin: async (started) => {
      api = started
      const annotations = { filler: 'x'.repeat(100_000) }
      for (let n = 0; n < LARGE; n++) {
        const made = makeEvent('large', `e-${String(n).padStart(2, '0')}`)
        const body = { ...made, metadata: { ...made.metadata, annotations } }
        const { status, json } = await api.call({ method: 'POST', at: 'large', body })
        assert.equal(status, 201)
        version = json.metadata.resourceVersion
      }
      assert.equal((await api.call({ method: 'DELETE', at: 'large' })).status, 200)
    },
  })

  for (const limit of [undefined, 1, 7, 25, LARGE - 1, LARGE, LARGE + 1]) {
    test(`a list up to a limit of ${limit} is complete, and its token continues after it`, async () => {
      const exact = { resourceVersion: version, resourceVersionMatch: 'Exact' }
      const query = { ...exact, ...(limit !== undefined && { limit }) }
      const { status, json } = await api.call({ at: 'large', query })
      assert.equal(status, 200)
      const names = (items: readonly WireEvent[]) => items.map(({ metadata }) => metadata.name)
      const expected = Array.from({ length: LARGE }, (_, n) => `e-${String(n).padStart(2, '0')}`)
      const cut = Math.min(limit ?? LARGE, LARGE)
      assert.deepEqual(names(json.items), expected.slice(0, cut))
      const token = json.metadata.continue
      assert.equal(token !== undefined, cut < LARGE)
      assert.equal(json.metadata.remainingItemCount, cut < LARGE ? LARGE - cut : undefined)
      if (token === undefined) return
      const rest = await api.call({ at: 'large', query: { continue: token } })
      assert.deepEqual(names(rest.json.items), expected.slice(cut))
    })
  }
})
