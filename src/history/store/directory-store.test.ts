import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { DirectoryStore } from './directory-store.ts'

const signal: AbortSignal = new AbortController().signal
const DAY_MS = 24 * 60 * 60 * 1000

describe('DirectoryStore', () => {
  let folder: string
  let count = 0
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-directory-'))
  })
  after(() => rm(folder, { recursive: true }))

  const create = () => {
    const root = join(folder, `${count++}`)
    return { root, store: new DirectoryStore(root) }
  }
  const namesIn = async (store: DirectoryStore) => {
    const names: string[] = []
    for await (const { name } of store.list('', { signal })) names.push(name)
    return names.sort()
  }

  test('an empty or missing directory has no objects', async () => {
    assert.deepEqual(await namesIn(create().store), [])
  })

  test('a failed put leaves nothing', async () => {
    const { root, store } = create()
    await assert.rejects(store.put('a/x', { path: import.meta.filename, bytes: 1 }, { signal }))
    assert.deepEqual(await readdir(root), ['.unfinished'])
    assert.deepEqual(await readdir(join(root, '.unfinished')), [])
  })

  test('a put that the caller aborts leaves nothing', async () => {
    const { root, store } = create()
    const path = join(folder, 'large')
    await writeFile(path, Buffer.alloc(50_000_000))
    const leaving = new AbortController()
    const putting = store.put('x', { path, bytes: 50_000_000 }, { signal: leaving.signal })
    leaving.abort()
    await assert.rejects(putting, {
      kind: 'unavailable',
      message: `put ${join(root, 'x')}: aborted`,
    })
    // The put itself ends a moment later.
    while ((await readdir(join(root, '.unfinished')).catch(() => ['']))[0] !== undefined);
    assert.deepEqual(await namesIn(store), [])
  })

  test('deletes what an ended process left unfinished, but not what others write now', async () => {
    const { root, store } = create()
    const [old, young] = ['old', 'young'].map((name) => join(root, '.unfinished', name))
    assert.ok(old !== undefined && young !== undefined)
    await mkdir(dirname(old), { recursive: true })
    for (const path of [old, young]) await writeFile(path, 'half of a file')
    const yesterday = new Date(Date.now() - DAY_MS - 60_000)
    await utimes(old, yesterday, yesterday)
    await store.put('x', Buffer.from('x'), { signal })
    assert.deepEqual(await readdir(dirname(old)), ['young'])
    assert.deepEqual(await namesIn(store), ['x'])
  })

  test('lists only what can be objects', async () => {
    const { root, store } = create()
    await store.put('a/x', Buffer.from('x'), { signal })
    await mkdir(join(root, 'lost found'))
    await writeFile(join(root, 'lost found', 'y'), 'y')
    await writeFile(join(root, '.hidden'), 'z')
    await symlink(folder, join(root, 'elsewhere'))
    execFileSync('mkfifo', [join(root, 'pipe')])
    assert.deepEqual(await namesIn(store), ['a/x'])
  })

  test('does not wait for a pipe, and does not read a folder', async () => {
    const { root, store } = create()
    await mkdir(join(root, 'a'), { recursive: true })
    execFileSync('mkfifo', [join(root, 'pipe')])
    for (const name of ['a', 'pipe']) {
      await assert.rejects(store.get(name, { signal, bytesMax: 10 }), {
        kind: 'unavailable',
        message: `${join(root, name)} is not a file`,
      })
    }
  })

  test('deletes folders with their last object', async () => {
    const { root, store } = create()
    for (const name of ['cluster=a/date=1/x', 'cluster=a/date=2/y']) {
      await store.put(name, Buffer.from('x'), { signal })
    }
    await store.delete('cluster=a/date=1/x', { signal })
    assert.deepEqual(await readdir(join(root, 'cluster=a')), ['date=2'])
    await store.delete('cluster=a/date=2/y', { signal })
    assert.deepEqual(await readdir(root), ['.unfinished'])
  })

  test('puts into a folder that others delete at the same time', async () => {
    const { store } = create()
    const putAndDelete = async (name: string) => {
      for (let round = 0; round < 50; round++) {
        await store.put(`folder/${name}`, Buffer.from(name), { signal })
        await store.delete(`folder/${name}`, { signal })
      }
    }
    await Promise.all(['a', 'b', 'c', 'd'].map(putAndDelete))
    assert.deepEqual(await namesIn(store), [])
  })
})
