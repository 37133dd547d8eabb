import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  type Answered,
  type Call,
  type EventApiUnderTest,
  withEventApi,
} from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import type { Watched } from '../../support/watched.ts'
import { makeEvent } from '../../support/wire-event.ts'

const path = '/api/v1/namespaces'
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

describe('namespaces that have events', () => {
  let api: EventApiUnderTest
  withEventApi({
    begin: async (started) => {
      api = started
      for (const [cluster, namespace] of [
        ['local', 'shop'],
        ['local', 'kube-system'],
        ['other', 'shop'],
        ['other', 'only-there'],
      ] as const) {
        await write(cluster, namespace, 'x')
      }
    },
  })

  const write = async (cluster: string, namespace: string, name: string): Promise<void> => {
    const { kind: _kind, apiVersion: _version, metadata, ...rest } = makeEvent(namespace, name)
    const body = Buffer.from(JSON.stringify({ metadata, ...rest }))
    await api.storage.create({ cluster, namespace, name }, body)
  }
  const read = (call: Partial<Call> = {}): Promise<Answered> => api.call({ at: '', path, ...call })
  const received = async (watched: Watched, frames: readonly string[]): Promise<void> => {
    await eventually(`${frames.length} frames`, () => watched.frames.length >= frames.length)
    assert.deepEqual(watched.received, frames)
  }
  const namesIn = ({ json }: Answered): readonly string[] =>
    json.items.map((item: { metadata: { name: string } }) => item.metadata.name)

  test('a list has the namespaces of its cluster, and of all clusters each once', async () => {
    assert.deepEqual(namesIn(await read()), ['kube-system', 'shop'])
    assert.deepEqual(namesIn(await read({ cluster: 'other' })), ['only-there', 'shop'])
    assert.deepEqual(namesIn(await read({ cluster: 'none' })), [])
    assert.deepEqual(namesIn(await read({ cluster: '*' })), ['kube-system', 'only-there', 'shop'])
  })

  test('an object has what clients read of a namespace', async () => {
    const { json, status } = await read({ path: `${path}/shop` })
    assert.equal(status, 200)
    const { uid, resourceVersion, creationTimestamp, ...metadata } = json.metadata
    assert.deepEqual(
      { ...json, metadata },
      {
        kind: 'Namespace',
        apiVersion: 'v1',
        metadata: { name: 'shop', labels: { 'kubernetes.io/metadata.name': 'shop' } },
        spec: {},
        status: { phase: 'Active' },
      },
    )
    assert.match(uid, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.match(resourceVersion, /^\d+$/)
    assert.match(creationTimestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    const there = await read({ cluster: 'other', path: `${path}/shop` })
    assert.notEqual(there.json.metadata.uid, uid)
    const missing = await read({ path: `${path}/only-there` })
    assert.equal(missing.status, 404)
    assert.equal(missing.json.message, 'namespaces "only-there" not found')
    assert.deepEqual(missing.json.details, { name: 'only-there', kind: 'namespaces' })
  })

  test('tables have the columns of kubectl, and other formats are negotiated', async () => {
    const table = await read({ headers: { accept: TABLE } })
    assert.deepEqual(
      table.json.columnDefinitions.map((column: { name: string }) => column.name),
      ['Name', 'Status', 'Age'],
    )
    assert.deepEqual(table.json.rows[1].cells.slice(0, 2), ['shop', 'Active'])
    assert.equal(table.json.rows[1].object.kind, 'PartialObjectMetadata')
    const yaml = await read({ headers: { accept: 'application/yaml' } })
    assert.match(yaml.text, /^apiVersion: v1\nitems:\n/)
    assert.match(yaml.text, /phase: Active/)
    // Typed clients of client-go ask like this.
    const accept = 'application/vnd.kubernetes.protobuf,application/json'
    const protobuf = await read({ headers: { accept } })
    assert.equal(protobuf.headers['content-type'], 'application/vnd.kubernetes.protobuf')
    assert.match(protobuf.text, /^k8s\0/)
    assert.match(protobuf.text, /NamespaceList/)
    assert.match(protobuf.text, /shop/)
    assert.equal((await read({ headers: { accept: 'text/html' } })).status, 406)
  })

  test('selectors choose by name and label', async () => {
    const by = (query: Call['query']) => read({ query: query ?? {} })
    assert.deepEqual(namesIn(await by({ fieldSelector: 'metadata.name=shop' })), ['shop'])
    assert.deepEqual(namesIn(await by({ fieldSelector: 'metadata.name!=shop' })), ['kube-system'])
    const labelSelector = 'kubernetes.io/metadata.name in (shop,x)'
    assert.deepEqual(namesIn(await by({ labelSelector })), ['shop'])
    const refused = await by({ fieldSelector: 'reason=x' })
    assert.equal(refused.status, 400)
    assert.match(refused.json.message, /field label not supported: reason/)
  })

  test('pages are of one version, also after namespaces came and went', async () => {
    await write('paged', 'b', 'x')
    await write('paged', 'c', 'x')
    const cluster = 'paged'
    const first = await read({ cluster, query: { limit: 1 } })
    assert.deepEqual(namesIn(first), ['b'])
    assert.equal(first.json.metadata.remainingItemCount, 1)
    await write('paged', 'bb', 'x')
    await api.storage.delete({ cluster, namespace: 'c', name: 'x' })
    const query = { limit: 10, continue: first.json.metadata.continue }
    const second = await read({ cluster, query })
    assert.deepEqual(namesIn(second), ['c'])
    assert.equal(second.json.metadata.resourceVersion, first.json.metadata.resourceVersion)
    assert.deepEqual(namesIn(await read({ cluster })), ['b', 'bb'])
  })

  test('a watch reports the first and the last event of a namespace, and resumes from any version', async () => {
    const before = await read()
    const { resourceVersion } = before.json.metadata
    await using watched = await api.watch('', { resourceVersion }, { path })
    await using there = await api.watch('', {}, { path, cluster: 'other' })
    await write('local', 'new', 'one')
    await write('local', 'new', 'two')
    await api.storage.delete({ cluster: 'local', namespace: 'new', name: 'one' })
    await api.storage.delete({ cluster: 'local', namespace: 'new', name: 'two' })
    await received(watched, ['ADDED new', 'DELETED new'])
    assert.deepEqual(there.received, ['ADDED only-there', 'ADDED shop'])
    const added = watched.frames[0]?.object.metadata.resourceVersion ?? ''
    await using resumed = await api.watch('', { resourceVersion: added }, { path })
    await received(resumed, ['DELETED new'])
  })

  test('an informer gets the initial namespaces and a bookmark, and a filtered watch only its own', async () => {
    const query = {
      sendInitialEvents: true,
      allowWatchBookmarks: true,
      resourceVersionMatch: 'NotOlderThan',
    }
    await using watched = await api.watch('', query, { path })
    await eventually('a bookmark', () => watched.frames.at(-1)?.type === 'BOOKMARK')
    assert.deepEqual(watched.received.slice(0, -1), ['ADDED kube-system', 'ADDED shop'])
    const bookmark = watched.frames.at(-1)?.object
    assert.deepEqual(bookmark?.metadata.annotations, { 'k8s.io/initial-events-end': 'true' })
    assert.equal(bookmark?.kind, 'Namespace')
    await using one = await api.watch('', { fieldSelector: 'metadata.name=mine' }, { path })
    await write('local', 'not-mine', 'x')
    await write('local', 'mine', 'x')
    await received(one, ['ADDED mine'])
  })

  test('a watch from before the log of changes gets 410', async () => {
    await using watched = await api.watch('', { resourceVersion: '1' }, { path })
    await watched.ended
    assert.deepEqual(
      watched.frames.map(({ type, object }) => [type, 'code' in object && object.code]),
      [['ERROR', 410]],
    )
  })

  test('cannot be written', async () => {
    const body = { kind: 'Namespace', apiVersion: 'v1', metadata: { name: 'made' } }
    assert.equal((await read({ method: 'POST', body })).status, 405)
    assert.equal((await read({ method: 'DELETE', path: `${path}/shop` })).status, 405)
    assert.equal((await read({ method: 'DELETE' })).status, 405)
    assert.equal((await read({ path: `${path}/shop/status` })).status, 404)
  })
})
