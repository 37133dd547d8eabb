/** The cache for files of a bucket, with a real bucket, a disk that is too small, and a server that fails. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, describe, test } from 'node:test'
import type { StoredFile } from '../../../src/history/manifest.ts'
import { FileCache } from '../../../src/history/store/file-cache.ts'
import { S3Store } from '../../../src/history/store/s3-store.ts'
import { describeContent, putVerified } from '../../../src/history/store/verified-put.ts'
import { HttpFaults } from '../../support/http-faults.ts'
import { fails } from '../../support/object-store-contract.ts'
import { type S3Server, s3Environment, startS3 } from '../../support/s3.ts'
import { mountSmallVolume } from '../../support/small-volume.ts'

const signal: AbortSignal = new AbortController().signal
const MIB = 1024 * 1024

describe('the cache for files of a bucket', () => {
  let s3: S3Server
  let faults: HttpFaults
  let store: S3Store
  const files: StoredFile[] = []
  before(async () => {
    s3 = await startS3()
    faults = await HttpFaults.start(s3.endpoint)
    const env = s3Environment(faults.endpoint, 'S3RVER', 'S3RVER')
    // biome-ignore lint/style/noProcessEnv: the SDK reads credentials there and nowhere else.
    Object.assign(process.env, env)
    store = new S3Store({ bucket: s3.bucket, prefix: 'events' }, env, { idleMs: 300, pauseMs: 10 })
    for (const name of ['a', 'b', 'c', 'd']) {
      const content = randomBytes(MIB)
      const file = describeContent(`cluster=x/${name}.parquet`, content)
      await putVerified(store, file, content, { signal })
      files.push(file)
    }
  })
  after(async () => {
    await faults[Symbol.asyncDispose]()
    await s3[Symbol.asyncDispose]()
  })

  const fileAt = (n: number): StoredFile => {
    const file = files[n]
    assert.ok(file !== undefined)
    return file
  }

  test('makes room on a disk that is smaller than its limit, until only files with leases are left', async () => {
    await using volume = await mountSmallVolume(2.5 * MIB)
    const folder = join(volume.path, 'cache')
    const cache = await FileCache.start({ store, folder, bytesMax: 100 * MIB })
    for (const file of files) {
      using lease = await cache.open(file, { signal })
      assert.equal(describeContent('', await readFile(lease.path)).sha256, file.sha256)
    }
    assert.equal(cache.counters.evictions, 2)
    using _a = await cache.open(fileAt(0), { signal })
    using _b = await cache.open(fileAt(1), { signal })
    await fails('full', /cannot write .*ENOSPC/, cache.open(fileAt(2), { signal }))
    assert.equal((await readdir(folder)).length, 2)
    assert.equal(cache.counters.bytes, 2 * MIB)
  })

  test('has a whole file after a download that broke off, and none after one that failed', async () => {
    await using volume = await mountSmallVolume(10 * MIB)
    const cache = await FileCache.start({ store, folder: volume.path, bytesMax: 10 * MIB })
    faults.inOrder({ kind: 'cut', afterBytes: 300_000 }, { kind: 'stall', afterBytes: 10 })
    using lease = await cache.open(fileAt(0), { signal })
    assert.equal(describeContent('', await readFile(lease.path)).sha256, fileAt(0).sha256)
    faults.decide = () => ({ kind: 'cut', afterBytes: 1_000 })
    const callers = [1, 2, 3].map(() => cache.open(fileAt(1), { signal }))
    for (const caller of callers) await fails('unavailable', /b\.parquet/, caller)
    faults.inOrder()
    assert.equal((await readdir(volume.path)).length, 1)
    using _again = await cache.open(fileAt(1), { signal })
    assert.equal(cache.counters.files, 2)
  })
})
