/** A directory on a disk that is full or read-only, and a process that is killed while it writes. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { describe, test } from 'node:test'
import { DirectoryStore } from '../../../src/history/store/directory-store.ts'
import { eventually } from '../../support/eventually.ts'
import { fails } from '../../support/object-store-contract.ts'
import { mountSmallVolume } from '../../support/small-volume.ts'

const signal: AbortSignal = new AbortController().signal
const MIB = 1024 * 1024

describe('a directory', () => {
  test('that is full refuses a put, leaves no part of it, and works again when there is space', async () => {
    await using volume = await mountSmallVolume(2 * MIB)
    const store = new DirectoryStore(volume.path)
    await store.put('a', Buffer.alloc(MIB), { signal })
    const message = /cannot write .*: ENOSPC.*free space/
    await fails('full', message, store.put('b', Buffer.alloc(3 * MIB), { signal }))
    await fails('full', message, store.put('b', Buffer.alloc(3 * MIB), { signal }))
    assert.deepEqual(await unfinishedIn(volume.path), [])
    assert.deepEqual(await namesIn(store), ['a'])
    await store.put('b', Buffer.alloc(MIB / 2), { signal })
    await store.delete('a', { signal })
    await store.put('c', Buffer.alloc(MIB), { signal })
    assert.deepEqual(await namesIn(store), ['b', 'c'])
  })

  test('without space for a download fails as full, and leaves no part of it', async () => {
    await using volume = await mountSmallVolume(MIB)
    const folder = await mkdtemp(join(tmpdir(), 'tidings-directory-'))
    const store = new DirectoryStore(folder)
    await store.put('a', Buffer.alloc(2 * MIB), { signal })
    const path = join(volume.path, 'downloaded')
    await fails('full', /cannot write .*downloaded: ENOSPC/, store.download('a', path, { signal }))
    assert.deepEqual(await readdir(volume.path), [])
    await rm(folder, { recursive: true })
  })

  test('that is read-only denies puts and deletes, and can be read', async () => {
    await using volume = await mountSmallVolume(MIB)
    const store = new DirectoryStore(volume.path)
    await store.put('a', Buffer.from('a'), { signal })
    await volume.setReadOnly()
    const message = /EROFS.*mounted read-only/
    await fails('denied', message, store.put('b', Buffer.from('b'), { signal }))
    await fails('denied', message, store.delete('a', { signal }))
    assert.equal(String(await store.get('a', { signal, bytesMax: 1 })), 'a')
    const other = new DirectoryStore(join(volume.path, 'elsewhere'))
    await fails(
      'denied',
      /cannot write to .*elsewhere: EROFS/,
      other.put('b', Buffer.from('b'), { signal }),
    )
  })

  test('has no part of an object whose writer was killed', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-directory-'))
    const module = join(import.meta.dirname, '../../../src/history/store/directory-store.ts')
    // Few names, so that the disk does not fill up, and not for ever.
    const program = `
      const { DirectoryStore } = await import(${JSON.stringify(module)})
      const store = new DirectoryStore(${JSON.stringify(folder)})
      const { signal } = new AbortController()
      for (let n = 0; n < 500; n++) await store.put('n' + (n % 3), Buffer.alloc(20_000_000), { signal })`
    const flags = ['--input-type=module', '--eval', program]
    const writer = spawn(process.execPath, flags, { stdio: 'inherit' })
    const exit = once(writer, 'exit')
    const store = new DirectoryStore(folder)
    try {
      await eventually('three puts', async () => (await namesIn(store)).length === 3)
      await eventually('a put under way', async () => (await unfinishedIn(folder)).length > 0)
    } finally {
      writer.kill('SIGKILL')
      await exit
    }
    for await (const { name, bytes } of store.list('', { signal })) {
      assert.equal(bytes, 20_000_000, name)
    }
    await rm(folder, { recursive: true })
  })
})

async function unfinishedIn(folder: string): Promise<readonly string[]> {
  return await readdir(join(folder, '.unfinished'))
}

async function namesIn(store: DirectoryStore): Promise<readonly string[]> {
  const names: string[] = []
  for await (const { name } of store.list('', { signal })) names.push(name)
  return names.sort()
}
