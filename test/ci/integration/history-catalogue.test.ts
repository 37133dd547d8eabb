import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import type { KnownHistory } from '../../../src/election/known-history.ts'
import { EtcdClient } from '../../../src/etcd/client.ts'
import { Catalogue, type Current, NO_FILES, stateOf } from '../../../src/history/catalogue.ts'
import { recover } from '../../../src/history/commands/recover.ts'
import type { EventFile } from '../../../src/history/manifest.ts'
import { DirectoryStore } from '../../../src/history/store/directory-store.ts'
import { StoreError } from '../../../src/history/store/object-store.ts'
import { silentLog } from '../../../src/lib/log/log.ts'
import { controlKey } from '../../../src/storage/etcd/keys.ts'
import { parseVersion } from '../../../src/storage/resource-version.ts'
import { startEtcd } from '../../support/etcd.ts'
import { eventually } from '../../support/eventually.ts'

const { signal } = new AbortController()
const prefix = '/tidings'
const at = (version: number) => ({ position: parseVersion(String(version)), positionAtMs: version })

async function site() {
  const stack = new AsyncDisposableStack()
  const etcd = stack.use(await startEtcd())
  const folder = await mkdtemp(join(tmpdir(), 'tidings-catalogue-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const client = new EtcdClient({ endpoints: etcd.endpoints, defaultTimeoutMs: 5_000 })
  stack.defer(() => client.close())
  const store = new DirectoryStore(folder)
  const catalogue = (etcdHistory?: KnownHistory) =>
    new Catalogue({ client, prefix, replica: 'host/1', store, etcdHistory, log: silentLog })
  return { client, folder, store, catalogue, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

function fileOf(name: string): EventFile {
  const object = { bytes: 1, sha256: '0'.repeat(64) }
  return {
    name,
    ...object,
    rows: 10,
    sequences: [1, 1],
    seen: [100, 200],
    occurred: [50, 200],
    namespaces: ['a', 'b'],
    kinds: ['Pod', 'Pod'],
    objects: ['x', 'y'],
    rollup: { name: `rollups/${name}`, ...object },
  }
}

function added(date: string, name: string) {
  const folder = `cluster=local/date=${date}`
  return { cluster: 'local', date, file: fileOf(`${folder}/${name}.parquet`) }
}

function isCurrent(outcome: Current | string): Current {
  assert.equal(typeof outcome, 'object', String(outcome))
  return outcome as Current
}

describe('the catalogue of the archive', () => {
  test('names files by day, and keeps what it does not touch', async () => {
    await using place = await site()
    const catalogue = place.catalogue()
    assert.equal(await catalogue.read(signal), undefined)
    const first = isCurrent(
      await catalogue.commit(
        undefined,
        {
          ...NO_FILES,
          added: [added('2026-01-01', 'a'), added('2026-01-02', 'b')],
          position: at(7),
        },
        { signal },
      ),
    )
    const second = isCurrent(
      await catalogue.commit(
        first,
        {
          added: [added('2026-01-02', 'c')],
          removed: new Set(['cluster=local/date=2026-01-02/b.parquet']),
        },
        { signal },
      ),
    )
    const { manifest, pointer } = second
    assert.deepEqual([pointer.sequence, pointer.position, pointer.positionAtMs], [2, 7, 7])
    assert.deepEqual(
      manifest.days.map(({ date, files, rows }) => [date, files, rows]),
      [
        ['2026-01-01', 1, 10],
        ['2026-01-02', 1, 10],
      ],
    )
    // The list of the untouched day is the same object.
    assert.deepEqual(manifest.days[0], first.manifest.days[0])
    // What it replaces can be read for a while.
    assert.deepEqual(
      manifest.removed.map(({ name }) => name),
      [
        first.pointer.manifest.name,
        'cluster=local/date=2026-01-02/b.parquet',
        'rollups/cluster=local/date=2026-01-02/b.parquet',
        first.manifest.days[1]?.list.name,
      ],
    )
    // A catalogue that has nothing in memory reads the same.
    const read = await place.catalogue().read(signal)
    assert.deepEqual(read, second)
    const fresh = place.catalogue()
    const [, day] = second.manifest.days
    assert.ok(day)
    assert.deepEqual(await fresh.files(day, signal), {
      cluster: 'local',
      date: '2026-01-02',
      files: [added('2026-01-02', 'c').file],
    })
    assert.deepEqual(
      await fresh.manifestOf(stateOf(first.pointer.manifest), signal),
      first.manifest,
    )
    assert.equal(await fresh.manifestOf('../../etc/passwd', signal), undefined)
  })

  test('is changed by one of two writers only', async () => {
    await using place = await site()
    const [one, other] = [place.catalogue(), place.catalogue()]
    const edit = (name: string) => ({
      ...NO_FILES,
      added: [added('2026-01-01', name)],
      position: at(1),
    })
    const first = isCurrent(await one.commit(undefined, edit('a'), { signal }))
    assert.equal(await other.commit(undefined, edit('b'), { signal }), 'moved')
    const outcomes = await Promise.all([
      one.commit(first, edit('c'), { signal }),
      other.commit(first, edit('d'), { signal }),
    ])
    assert.equal(outcomes.filter((outcome) => outcome === 'moved').length, 1)
    const current = await one.read(signal)
    assert.equal(current?.manifest.days[0]?.files, 2)
  })

  test('is not changed after the term, nor if a file to remove is gone', async () => {
    await using place = await site()
    const catalogue = place.catalogue()
    const key = controlKey(prefix, 'archiver')
    const { revision } = await place.client.txn({
      compare: [],
      success: [{ type: 'put', key: Buffer.from(key), value: Buffer.from('host/1') }],
    })
    const edit = { ...NO_FILES, added: [added('2026-01-01', 'a')], position: at(1) }
    const lost = { signal, fence: { key, revision: revision - 1 } }
    assert.equal(await catalogue.commit(undefined, edit, lost), 'lost')
    const held = { signal, fence: { key, revision } }
    const first = isCurrent(await catalogue.commit(undefined, edit, held))
    const removed = new Set(['cluster=local/date=2026-01-01/z.parquet'])
    assert.equal(await catalogue.commit(first, { added: [], removed }, held), 'moved')
    assert.equal(await catalogue.advance(first, at(9), lost.fence), 'lost')
    isCurrent(await catalogue.advance(first, at(9), held.fence))
    assert.equal(catalogue.position, 9)
    assert.equal((await place.catalogue().read(signal))?.pointer.position, 9)
  })

  test('knows the position also while the store does not answer', async () => {
    await using place = await site()
    const writer = place.catalogue()
    const edit = (position: number) => ({
      ...NO_FILES,
      added: [added('2026-01-01', `f${position}`)],
      position: at(position),
    })
    const first = isCurrent(await writer.commit(undefined, edit(1), { signal }))
    // As a mount does whose server is gone.
    place.store.get = () => new Promise(() => {})
    const reader = place.catalogue()
    const ending = new AbortController()
    const running = reader.run(ending.signal)
    await eventually('it knows the first position', () => reader.position === 1)
    isCurrent(await writer.commit(first, edit(2), { signal }))
    await eventually('it knows the second position', () => reader.position === 2, 5_000)
    ending.abort()
    // What hangs ends with its signal, which this store does not know.
    void running
  })

  test('is changed again once a broken connection was replaced and verified', async () => {
    await using place = await site()
    let verified = 0
    const catalogue = place.catalogue({
      verified: () => verified,
      verify: () => {
        verified = place.client.newestConnection
      },
    })
    const edit = { ...NO_FILES, added: [added('2026-01-01', 'a')], position: at(1) }
    await assert.rejects(catalogue.commit(undefined, edit, { signal }), { kind: 'outdated' })
    isCurrent(await catalogue.commit(undefined, edit, { signal }))
  })

  test('rejects a list that was changed, and finds the newest complete manifest', async () => {
    await using place = await site()
    const catalogue = place.catalogue()
    const edit = (name: string, date: string) => ({
      ...NO_FILES,
      added: [added(date, name)],
      position: at(5),
    })
    const first = isCurrent(await catalogue.commit(undefined, edit('a', '2026-01-01'), { signal }))
    const second = isCurrent(await catalogue.commit(first, edit('b', '2026-01-02'), { signal }))
    const list = second.manifest.days.find(({ date }) => date === '2026-01-02')?.list.name ?? ''
    await writeFile(join(place.folder, list), 'damaged')
    const fresh = place.catalogue()
    const [, day] = second.manifest.days
    assert.ok(day)
    await assert.rejects(fresh.files(day, signal), StoreError)
    await place.client.txn({
      compare: [],
      success: [{ type: 'delete', key: Buffer.from(controlKey(prefix, 'archive')) }],
    })
    const lines: string[] = []
    const options = { store: place.store, print: (line: string) => lines.push(line), signal }
    assert.equal(await recover({ catalogue: place.catalogue(), ...options }), true)
    const found = await place.catalogue().read(signal)
    assert.equal(found?.pointer.manifest.name, first.pointer.manifest.name, lines.join('\n'))
    // What this etcd has was never archived from it.
    assert.equal(found.pointer.position, 0)
    assert.equal((await readdir(join(place.folder, 'manifests'))).length > 0, true)
  })
})
