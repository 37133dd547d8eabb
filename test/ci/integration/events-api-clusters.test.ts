import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type EventApiUnderTest, withEventApi } from '../../support/event-api.ts'
import { eventually } from '../../support/eventually.ts'
import { makeEvent, type WireEvent } from '../../support/wire-event.ts'

/** Key order: the slash after a name sorts after a hyphen. */
const CLUSTERS = ['a-b', 'a', 'b', 'local', 'stalled']
const TABLE = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json'

describe('clusters side by side', () => {
  let api: EventApiUnderTest

  withEventApi({
    options: {
      mirrored: {
        isMirrored: (cluster) => cluster === 'stalled',
        warnings: (cluster) =>
          cluster === 'stalled' || cluster === '*' ? ['the mirror of stalled is 5m behind'] : [],
      },
    },
    begin: async (started) => {
      api = started
      for (const cluster of CLUSTERS) {
        for (const namespace of ['n', 'n-1']) {
          for (const name of ['x', 'y', 'z']) {
            const event = { ...makeEvent(namespace, name), note: `of ${cluster}` }
            const { kind: _kind, apiVersion: _version, metadata, ...rest } = event
            const body = Buffer.from(JSON.stringify({ metadata, ...rest }))
            await api.storage.create({ cluster, namespace, name }, body)
          }
        }
      }
    },
  })

  const clusterOf = ({ metadata }: WireEvent): string | undefined =>
    metadata.annotations?.['tidings.dev/cluster']

  test('equal namespaces and names in different clusters are different events', async () => {
    for (const cluster of CLUSTERS) {
      const { json } = await api.call({ cluster, at: 'n' })
      assert.deepEqual(
        json.items.map(({ metadata, note }: WireEvent) => `${metadata.name} ${note}`),
        ['x', 'y', 'z'].map((name) => `${name} of ${cluster}`),
      )
      const { json: one } = await api.call({ cluster, at: 'n/x' })
      assert.equal(one.note, `of ${cluster}`)
      assert.equal(one.metadata.annotations, undefined)
    }
    const { json } = await api.call({ at: 'n/x' })
    assert.equal(json.note, 'of local')
  })

  test('a write in one cluster changes nothing in another', async () => {
    const at = 'written'
    const body = makeEvent(at, 'w')
    assert.equal((await api.call({ cluster: 'a', method: 'POST', at, body })).status, 201)
    assert.equal((await api.call({ cluster: 'b', method: 'POST', at, body })).status, 201)
    const patched = await api.call({
      cluster: 'a',
      method: 'PATCH',
      at: `${at}/w`,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: { metadata: { labels: { is: 'changed' } } },
    })
    assert.equal(patched.json.metadata.labels.is, 'changed')
    const { json: other } = await api.call({ cluster: 'b', at: `${at}/w` })
    assert.equal(other.metadata.labels?.is, undefined)
    assert.equal((await api.call({ cluster: 'a', method: 'DELETE', at })).status, 200)
    assert.equal((await api.call({ cluster: 'a', at: `${at}/w` })).status, 404)
    assert.equal((await api.call({ cluster: 'b', at: `${at}/w` })).status, 200)
    assert.equal((await api.call({ cluster: 'b', method: 'DELETE', at })).status, 200)
  })

  test('the wildcard lists all clusters, each event with its cluster', async () => {
    const { json } = await api.call({ cluster: '*', at: '' })
    assert.equal(json.items.length, CLUSTERS.length * 6)
    for (const item of json.items) assert.equal(item.note, `of ${clusterOf(item)}`)
    const { json: inNamespace } = await api.call({ cluster: '*', at: 'n' })
    assert.deepEqual(
      inNamespace.items.map(
        (item: WireEvent) => `${clusterOf(item)} ${item.metadata.namespace}/${item.metadata.name}`,
      ),
      CLUSTERS.flatMap((cluster) => ['x', 'y', 'z'].map((name) => `${cluster} n/${name}`)),
    )
  })

  test('pages of the wildcard, and of one cluster, are complete and without overlap', async () => {
    for (const cluster of ['*', 'a']) {
      const found: string[] = []
      let token = ''
      do {
        const query = { limit: 4, continue: token }
        const { json } = await api.call({ cluster, at: '', query })
        found.push(
          ...json.items.map(
            (item: WireEvent) => `${item.note} ${item.metadata.namespace}/${item.metadata.name}`,
          ),
        )
        token = json.metadata.continue ?? ''
      } while (token !== '')
      const count = cluster === '*' ? CLUSTERS.length * 6 : 6
      assert.equal(new Set(found).size, count)
      assert.equal(found.length, count)
    }
  })

  test('a continue token of another cluster or of the wildcard shows nothing of that cluster', async () => {
    for (const from of ['a', '*']) {
      const { json } = await api.call({ cluster: from, at: '', query: { limit: 1 } })
      const query = { limit: 100, continue: json.metadata.continue }
      const answer = await api.call({ cluster: 'b', at: '', query })
      if (answer.status !== 200) assert.equal(answer.status, 400)
      else for (const { note } of answer.json.items) assert.equal(note, 'of b')
    }
  })

  test('a table of the wildcard begins with the cluster, other tables do not', async () => {
    const headers = { accept: TABLE }
    const { json } = await api.call({ cluster: '*', at: '', headers })
    assert.equal(json.columnDefinitions[0].name, 'Cluster')
    assert.equal(json.rows[0].cells[0], 'a-b')
    assert.equal(json.rows.at(-1).cells[0], 'stalled')
    const { json: one } = await api.call({ cluster: 'a', at: '', headers })
    assert.equal(one.columnDefinitions[0].name, 'Last Seen')
  })

  test('the wildcard is read-only', async () => {
    const body = makeEvent('n', 'new')
    for (const call of [
      { method: 'POST', at: 'n', body },
      { method: 'PUT', at: 'n/x', body },
      { method: 'PATCH', at: 'n/x', body: {} },
      { method: 'DELETE', at: 'n/x' },
      { method: 'DELETE', at: 'n' },
      { method: 'GET', at: 'n/x' },
    ]) {
      assert.equal((await api.call({ cluster: '*', ...call })).status, 405, call.method)
    }
  })

  test('a watch of one cluster sees only that cluster, and the wildcard sees all', async () => {
    const { json } = await api.call({ at: '', query: { limit: 1 } })
    const query = { resourceVersion: json.metadata.resourceVersion }
    await using one = await api.watch('', query, { cluster: 'a' })
    await using space = await api.watch('w', query, { cluster: 'b' })
    await using all = await api.watch('', query, { cluster: '*' })
    await using allOfSpace = await api.watch('w', query, { cluster: '*' })
    for (const cluster of ['a', 'b', 'a-b']) {
      for (const at of ['w', 'v']) {
        const body = makeEvent(at, `${cluster}-${at}`)
        assert.equal((await api.call({ cluster, method: 'POST', at, body })).status, 201)
      }
    }
    await eventually('all changes', () => all.frames.length === 6, 5_000)
    await eventually('the namespace', () => allOfSpace.frames.length === 3, 5_000)
    assert.deepEqual(one.received, ['ADDED a-w', 'ADDED a-v'])
    assert.deepEqual(space.received, ['ADDED b-w'])
    assert.deepEqual(
      all.frames.map(({ object }) => clusterOf(object)),
      ['a', 'a', 'b', 'b', 'a-b', 'a-b'],
    )
  })

  test('a mirrored cluster refuses changes through the API, but not deletes', async () => {
    const body = makeEvent('n', 'new')
    for (const call of [
      { method: 'POST', at: 'n', body },
      { method: 'PUT', at: 'n/x', body },
      { method: 'PATCH', at: 'n/x', body: {} },
    ]) {
      const { status, json } = await api.call({ cluster: 'stalled', ...call })
      assert.equal(status, 405, call.method)
      assert.match(json.message, /cluster "stalled" is mirrored/)
    }
    const deleted = await api.call({ cluster: 'stalled', method: 'DELETE', at: 'n-1/z' })
    assert.equal(deleted.status, 200)
  })

  test('lists of a stalled mirror carry a warning, also those of all clusters', async () => {
    for (const cluster of ['stalled', '*']) {
      const { headers } = await api.call({ cluster, at: '' })
      assert.equal(headers['warning'], '299 - "the mirror of stalled is 5m behind"')
    }
    assert.equal((await api.call({ cluster: 'a', at: '' })).headers['warning'], undefined)
  })
})
