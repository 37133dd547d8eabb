/** What every store of the archive guarantees, as tests. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { digestOf } from '../../src/history/store/object-bytes.ts'
import { type ObjectStore, StoreError } from '../../src/history/store/object-store.ts'
import { describeContent, putVerified } from '../../src/history/store/verified-put.ts'

export interface StoreUnderTest extends AsyncDisposable {
  readonly store: ObjectStore
}

/** More than S3 returns on one page. */
const MANY = 1_050
/** Several pieces, and more than the SDK sends without asking first. */
const LONG_BYTES = 5 * 1024 * 1024 + 7

const signal: AbortSignal = new AbortController().signal

export function objectStoreContract(
  storeName: string,
  make: () => Promise<StoreUnderTest>,
  options: { readonly skip?: false | string; readonly many?: number } = {},
): void {
  describe(`${storeName}: the contract of ObjectStore`, { skip: options.skip ?? false }, () => {
    let made: StoreUnderTest
    let store: ObjectStore
    let folder: string
    before(async () => {
      made = await make()
      store = made.store
      folder = await mkdtemp(join(tmpdir(), 'tidings-contract-'))
    })
    after(async () => {
      await made[Symbol.asyncDispose]()
      await rm(folder, { recursive: true })
    })

    const localFile = async (name: string, content: Buffer) => {
      const path = join(folder, name)
      await writeFile(path, content)
      return { path, bytes: content.length }
    }
    const get = (name: string) => store.get(name, { signal, bytesMax: 1024 })
    const namesIn = async (prefix: string) => {
      const names: string[] = []
      for await (const { name } of store.list(prefix, { signal })) names.push(name)
      return names.sort()
    }

    test('get returns what put wrote, also under names with = and +', async () => {
      const name = 'get/cluster=eu-1/date=2026-11-17/7+a_b~c.parquet'
      await store.put(name, Buffer.from('seven'), { signal })
      assert.equal(String(await get(name)), 'seven')
      await store.put('get/empty', Buffer.alloc(0), { signal })
      assert.equal((await get('get/empty')).length, 0)
    })

    test('a put may be repeated', async () => {
      await store.put('again/x', Buffer.from('same'), { signal })
      await store.put('again/x', Buffer.from('same'), { signal })
      assert.equal(String(await get('again/x')), 'same')
      assert.deepEqual(await namesIn('again/'), ['again/x'])
    })

    test('put takes a file, and read returns all of its bytes', async () => {
      const content = randomBytes(LONG_BYTES)
      await store.put('file/long', await localFile('long', content), { signal })
      const found = await digestOf(store.read('file/long', { signal }))
      assert.deepEqual(found, { bytes: LONG_BYTES, sha256: describeContent('', content).sha256 })
      await store.put('file/none', await localFile('none', Buffer.alloc(0)), { signal })
      assert.equal((await get('file/none')).length, 0)
    })

    test('put refuses a file that has another size, or that is not there', async () => {
      const file = await localFile('short', Buffer.alloc(100))
      await truncate(file.path, 99)
      await fails('unavailable', /short has not 100 bytes/, store.put('size/a', file, { signal }))
      await fails(
        'unavailable',
        /short has not 98 bytes/,
        store.put('size/b', { ...file, bytes: 98 }, { signal }),
      )
      const gone = { path: join(folder, 'gone'), bytes: 1 }
      await fails('unavailable', /gone/, store.put('size/c', gone, { signal }))
      assert.deepEqual(await namesIn('size/'), [])
    })

    test('an object that does not exist is missing', async () => {
      await fails('missing', /nowhere\/x/, get('nowhere/x'))
      await fails('missing', /nowhere\/x/, digestOf(store.read('nowhere/x', { signal })))
      const path = join(folder, 'missing')
      await fails('missing', /nowhere\/x/, store.download('nowhere/x', path, { signal }))
      assert.equal((await readdir(folder)).includes('missing'), false)
      await store.put('nowhere', Buffer.from('the folder is an object'), { signal })
      await fails('missing', /nowhere\/x/, get('nowhere/x'))
      await store.delete('nowhere', { signal })
    })

    test('get does not return more than its limit', async () => {
      await store.put('limit/x', Buffer.from('12345'), { signal })
      assert.equal((await store.get('limit/x', { signal, bytesMax: 5 })).length, 5)
      await fails(
        'unavailable',
        /limit\/x is longer than 4 bytes/,
        store.get('limit/x', { signal, bytesMax: 4 }),
      )
    })

    test('download writes a new file, and never over another', async () => {
      const content = randomBytes(LONG_BYTES)
      await store.put('download/x', content, { signal })
      const path = join(folder, 'downloaded')
      assert.equal(await store.download('download/x', path, { signal }), LONG_BYTES)
      assert.deepEqual(await readFile(path), content)
      await writeFile(path, 'other')
      await fails('unavailable', /downloaded/, store.download('download/x', path, { signal }))
      assert.equal(await readFile(path, 'utf8'), 'other')
    })

    test('list returns the objects whose names begin with the prefix', async () => {
      const names = ['list/a/1', 'list/a/2', 'list/ab/3', 'list/b']
      for (const name of names) await store.put(name, Buffer.from(name), { signal })
      assert.deepEqual(await namesIn('list/'), names)
      assert.deepEqual(await namesIn('list/a'), names.slice(0, 3))
      assert.deepEqual(await namesIn('list/a/'), names.slice(0, 2))
      assert.deepEqual(await namesIn('list/a/2'), ['list/a/2'])
      assert.deepEqual(await namesIn('list/c'), [])
      assert.deepEqual(await namesIn('lis/'), [])
      assert.ok((await namesIn('')).includes('list/ab/3'))
      for await (const { bytes, modifiedAtMs } of store.list('list/b', { signal })) {
        assert.equal(bytes, 'list/b'.length)
        assert.ok(Math.abs(modifiedAtMs - Date.now()) < 60_000)
      }
    })

    test('list returns all of many objects, and a reader may stop early', async () => {
      const names = Array.from(
        { length: options.many ?? MANY },
        (_, n) => `many/${n % 7}/${n}`,
      ).sort()
      const queue = names.values()
      const putAll = async () => {
        for (const name of queue) await store.put(name, Buffer.from('x'), { signal })
      }
      await Promise.all(Array.from({ length: 16 }, putAll))
      assert.deepEqual(await namesIn('many/'), names)
      for await (const { name } of store.list('many/', { signal })) {
        assert.ok(names.includes(name))
        break
      }
    })

    test('delete removes an object, and one that is not there', async () => {
      await store.put('delete/a/x', Buffer.from('x'), { signal })
      await store.put('delete/y', Buffer.from('y'), { signal })
      await store.delete('delete/a/x', { signal })
      await store.delete('delete/a/x', { signal })
      assert.deepEqual(await namesIn('delete/'), ['delete/y'])
      await fails('missing', /delete\/a\/x/, get('delete/a/x'))
    })

    test('no operation takes a name that leads elsewhere', async () => {
      const long = `${'long/'.repeat(160)}x`
      for (const name of ['', '/etc', '../x', 'a/../x', 'a//x', 'a/', '.x', 'a\0', 'a b', long]) {
        const wrong = /is not the name of an object/
        await fails('unavailable', wrong, store.put(name, Buffer.from('x'), { signal }))
        await fails('unavailable', wrong, get(name))
        await fails('unavailable', wrong, store.download(name, join(folder, 'x'), { signal }))
        await fails('unavailable', wrong, store.delete(name, { signal }))
      }
      for (const prefix of ['/', '../', 'a//', '.unfinished/']) {
        await fails('unavailable', /is not the beginning of a name/, namesIn(prefix))
      }
    })

    test('nothing is done for a caller that has gone', async () => {
      await store.put('gone/x', Buffer.from('x'), { signal })
      const gone = { signal: AbortSignal.abort(new Error('the caller left')) }
      await fails('unavailable', /aborted/, store.get('gone/x', { ...gone, bytesMax: 10 }))
      await fails('unavailable', /aborted/, store.put('gone/y', Buffer.from('y'), gone))
      await fails('unavailable', /aborted/, store.delete('gone/x', gone))
      await fails(
        'unavailable',
        /aborted/,
        (async () => {
          for await (const _object of store.list('gone/', gone));
        })(),
      )
    })

    test('a verified put has the bytes in the store that it was told', async () => {
      const content = randomBytes(300_000)
      const file = describeContent('verified/x', content)
      await putVerified(store, file, await localFile('verified', content), { signal })
      await putVerified(store, { ...file, name: 'verified/y' }, content, { signal })
      const other = describeContent('verified/z', randomBytes(300_000))
      await fails(
        'unavailable',
        /verified\/z .* not have the SHA-256/,
        putVerified(store, other, content, { signal }),
      )
    })
  })
}

export async function fails(
  kind: StoreError['kind'],
  message: RegExp,
  work: Promise<unknown>,
): Promise<void> {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof StoreError, String(error))
    assert.match(error.message, message)
    assert.equal(error.kind, kind, error.message)
    return true
  })
}
