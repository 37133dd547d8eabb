import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import type { StoredFile } from '../manifest.ts'
import { DirectoryStore } from './directory-store.ts'
import { FileCache } from './file-cache.ts'
import type { ObjectStore } from './object-store.ts'
import { describeContent } from './verified-put.ts'

const signal: AbortSignal = new AbortController().signal
const BYTES = 100_000

/** A directory that is far away: its files must be downloaded, and wait while the gate is closed. */
class FarStore implements ObjectStore {
  readonly reads: string[] = []
  readonly aborted: string[] = []
  readonly #directory: DirectoryStore
  #gate: PromiseWithResolvers<void> | undefined

  constructor(root: string) {
    this.#directory = new DirectoryStore(root)
  }

  close(): void {
    this.#gate = Promise.withResolvers()
  }

  open(): void {
    this.#gate?.resolve()
    this.#gate = undefined
  }

  async *read(name: string, options: { readonly signal: AbortSignal }): AsyncGenerator<Buffer> {
    this.reads.push(name)
    options.signal.addEventListener('abort', () => {
      this.aborted.push(name)
      this.#gate?.resolve()
    })
    for await (const piece of this.#directory.read(name, options)) {
      await this.#gate?.promise
      yield piece
    }
  }

  put: ObjectStore['put'] = (...args) => this.#directory.put(...args)
  get: ObjectStore['get'] = (...args) => this.#directory.get(...args)
  download: ObjectStore['download'] = (...args) => this.#directory.download(...args)
  list: ObjectStore['list'] = (...args) => this.#directory.list(...args)
  delete: ObjectStore['delete'] = (...args) => this.#directory.delete(...args)
}

describe('FileCache', () => {
  let root: string
  let folder: string
  let store: FarStore
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'tidings-cache-'))
    folder = join(root, 'cache')
    store = new FarStore(join(root, 'store'))
  })
  afterEach(() => rm(root, { recursive: true }))

  const start = (files: number) => FileCache.start({ store, folder, bytesMax: files * BYTES })
  const put = async (name: string, content = randomBytes(BYTES)): Promise<StoredFile> => {
    await store.put(name, content, { signal })
    return describeContent(name, content)
  }
  const touch = async (cache: FileCache, file: StoredFile) => {
    using _lease = await cache.open(file, { signal })
  }

  test('downloads a file once, and gives its path', async () => {
    const cache = await start(2)
    const content = randomBytes(BYTES)
    const file = await put('a/x', content)
    using first = await cache.open(file, { signal })
    using second = await cache.open(file, { signal })
    assert.equal(first.path, second.path)
    assert.deepEqual(await readFile(first.path), content)
    assert.deepEqual(store.reads, ['a/x'])
    const counters = { bytes: BYTES, files: 1, hits: 1, misses: 1, evictions: 0 }
    assert.deepEqual(cache.counters, counters)
  })

  test('deletes the least recently used file without a lease', async () => {
    const cache = await start(2)
    const [a, b, c] = [await put('a'), await put('b'), await put('c')]
    await touch(cache, a)
    await touch(cache, b)
    await touch(cache, a)
    await touch(cache, c)
    assert.deepEqual(await filesOf(folder), [a, c].map(({ sha256 }) => sha256).sort())
    await touch(cache, a)
    assert.deepEqual(store.reads, ['a', 'b', 'c'])
    assert.deepEqual(cache.counters, {
      bytes: 2 * BYTES,
      files: 2,
      hits: 2,
      misses: 3,
      evictions: 1,
    })
  })

  test('never deletes a file with a lease, and is full when only such files are left', async () => {
    const cache = await start(2)
    const [a, b, c] = [await put('a'), await put('b'), await put('c')]
    const held = await cache.open(a, { signal })
    using _also = await cache.open(b, { signal })
    await assert.rejects(cache.open(c, { signal }), {
      kind: 'full',
      message:
        'c of 100000 bytes does not fit: the cache is limited to 200000 bytes, and files of 200000 bytes are in use',
    })
    assert.deepEqual(store.reads, ['a', 'b'])
    held[Symbol.dispose]()
    // A second time it has no effect.
    held[Symbol.dispose]()
    await touch(cache, c)
    assert.equal((await stat(_also.path)).size, BYTES)
    await assert.rejects(stat(held.path), { code: 'ENOENT' })
  })

  test('a file that never fits evicts nothing', async () => {
    const cache = await start(1)
    await touch(cache, await put('a'))
    const large = await put('large', randomBytes(2 * BYTES))
    await assert.rejects(cache.open(large, { signal }), { kind: 'full' })
    assert.equal(cache.counters.files, 1)
  })

  test('concurrent callers share a download; one that leaves does not take it from the others', async () => {
    const cache = await start(2)
    const file = await put('x')
    store.close()
    const leaving = new AbortController()
    const first = cache.open(file, { signal: leaving.signal })
    const second = cache.open(file, { signal })
    leaving.abort()
    await assert.rejects(first, { kind: 'unavailable', message: 'open x: aborted' })
    store.open()
    using lease = await second
    assert.equal((await stat(lease.path)).size, BYTES)
    assert.deepEqual(store.reads, ['x'])
    assert.deepEqual(store.aborted, [])
  })

  test('ends a download that nobody waits for, and begins another for the next caller', async () => {
    const cache = await start(1)
    const file = await put('x')
    store.close()
    const leaving = new AbortController()
    const callers = [1, 2].map(() => cache.open(file, { signal: leaving.signal }))
    while (store.reads.length === 0) await new Promise((resolve) => setImmediate(resolve))
    leaving.abort()
    for (const caller of callers) await assert.rejects(caller, { kind: 'unavailable' })
    store.open()
    // The first download may still have its part of the disk. Then this waits for its end.
    await touch(cache, file)
    assert.deepEqual(store.aborted, ['x'])
    assert.deepEqual(store.reads, ['x', 'x'])
    assert.equal((await readdir(folder)).length, 1)
    assert.equal(cache.counters.bytes, BYTES)
  })

  test('a caller that has gone starts nothing', async () => {
    const cache = await start(1)
    const gone = { signal: AbortSignal.abort() }
    await assert.rejects(cache.open(await put('x'), gone), { message: 'open x: aborted' })
    assert.deepEqual(store.reads, [])
    assert.equal(cache.counters.misses, 0)
  })

  test('refuses a file that is not the one in the manifest, and keeps nothing of it', async () => {
    const cache = await start(3)
    const file = await put('x')
    for (const [content, message] of [
      [
        randomBytes(BYTES),
        `x is damaged: in the store it does not have the SHA-256 ${file.sha256}`,
      ],
      [randomBytes(BYTES - 1), 'x is damaged: in the store it has 99999 bytes, not 100000'],
      [randomBytes(BYTES + 1), 'x is damaged: in the store it has more than 100000 bytes'],
    ] as const) {
      await store.put('x', content, { signal })
      await assert.rejects(cache.open(file, { signal }), { kind: 'unavailable', message })
    }
    await store.delete('x', { signal })
    await assert.rejects(cache.open(file, { signal }), { kind: 'missing' })
    assert.deepEqual(await readdir(folder), [])
    assert.equal(cache.counters.bytes, 0)
    assert.equal(cache.counters.files, 0)
  })

  test('refuses a description that would lead out of its folder', async () => {
    const cache = await start(3)
    const file = await put('x')
    for (const wrong of [{ sha256: '../../x' }, { sha256: '' }, { bytes: -1 }, { bytes: 0.5 }]) {
      await assert.rejects(cache.open({ ...file, ...wrong }, { signal }), { kind: 'unavailable' })
    }
  })

  test('takes over the files of an earlier process, the least recently used ones last', async () => {
    const before = await start(3)
    const files = [await put('a'), await put('b'), await put('c')]
    for (const file of files) await touch(before, file)
    for (const [n, file] of files.entries()) {
      const [name = ''] = (await readdir(folder)).filter((found) => found.startsWith(file.sha256))
      await utimes(join(folder, name), n + 1, n + 1)
    }
    const after = await start(2)
    assert.deepEqual(after.counters, {
      bytes: 2 * BYTES,
      files: 2,
      hits: 0,
      misses: 0,
      evictions: 1,
    })
    for (const file of files.slice(1)) await touch(after, file)
    assert.deepEqual(store.reads, ['a', 'b', 'c'])
    assert.equal(after.counters.hits, 2)
  })

  test('takes over no file that is not whole or was changed, and none that is not its own', async () => {
    const before = await start(3)
    const [a, b] = [await put('a'), await put('b')]
    for (const file of [a, b]) await touch(before, file)
    const pathOf = async ({ sha256 }: StoredFile) => {
      const [name = ''] = (await readdir(folder)).filter((found) => found.startsWith(sha256))
      return join(folder, name)
    }
    await writeFile(await pathOf(a), 'short')
    await writeFile(await pathOf(b), Buffer.alloc(BYTES))
    await writeFile(join(folder, `.download-${'0'.repeat(16)}`), 'a part')
    await writeFile(join(folder, 'notes.txt'), 'of an operator')
    const after = await start(3)
    assert.equal(after.counters.files, 1)
    for (const file of [a, b]) {
      using lease = await after.open(file, { signal })
      assert.equal(describeContent('', await readFile(lease.path)).sha256, file.sha256)
    }
    assert.deepEqual(store.reads, ['a', 'b', 'a', 'b'])
    assert.equal(after.counters.misses, 2)
    assert.deepEqual(await filesOf(folder), [a.sha256, b.sha256, 'notes.txt'].sort())
  })

  test('downloads a file again that another program deleted', async () => {
    const cache = await start(2)
    const file = await put('x')
    using held = await cache.open(file, { signal })
    await rm(held.path)
    using again = await cache.open(file, { signal })
    assert.equal((await stat(again.path)).size, BYTES)
    assert.equal(cache.counters.bytes, BYTES)
    held[Symbol.dispose]()
    assert.equal(cache.counters.files, 1)
  })

  test('gives the path in place if the store is on this machine', async () => {
    const local = new DirectoryStore(join(root, 'store'))
    const cache = await FileCache.start({ store: local, folder: '/nowhere', bytesMax: 1 })
    const file = await put('a/x')
    using lease = await cache.open(file, { signal })
    assert.equal(lease.path, join(root, 'store', 'a/x'))
    assert.equal(cache.counters.files, 0)
  })

  test('stays within its limit under many callers', async () => {
    const cache = await start(5)
    const files = await Promise.all(Array.from({ length: 12 }, (_, n) => put(`${n}`)))
    const caller = async (n: number) => {
      for (let round = 0; round < 40; round++) {
        const file = files[(n * 7 + round * 5) % files.length]
        assert.ok(file !== undefined)
        using lease = await cache.open(file, { signal })
        assert.equal(describeContent('', await readFile(lease.path)).sha256, file.sha256)
        assert.ok(cache.counters.bytes <= 5 * BYTES)
      }
    }
    await Promise.all([1, 2, 3, 4, 5].map(caller))
    assert.equal((await readdir(folder)).length, cache.counters.files)
  })
})

/** What is before the first dash of the names: the SHA-256. */
async function filesOf(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).map((name) => name.split('-')[0] ?? '').sort()
}
