/** A bucket behind a server that is slow, breaks off, refuses or lies. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { inspect } from 'node:util'
import { type ObjectStore, StoreError } from '../../../src/history/store/object-store.ts'
import { S3Store } from '../../../src/history/store/s3-store.ts'
import { describeContent, putVerified } from '../../../src/history/store/verified-put.ts'
import { type HttpFault, HttpFaults } from '../../support/http-faults.ts'
import { fails } from '../../support/object-store-contract.ts'
import { type S3Server, s3Environment, startS3 } from '../../support/s3.ts'
import { Stopwatch } from '../../support/stopwatch.ts'

const signal: AbortSignal = new AbortController().signal
const CONTENT = randomBytes(700_000)
const ATTEMPTS = 4
/** Of the store under test. Four attempts without a byte, and the pauses between them. */
const IDLE_MS = 400
const SILENT_MS_MAX = 6_000

describe('a bucket behind a server that fails', () => {
  let s3: S3Server
  let faults: HttpFaults
  let store: ObjectStore
  let folder: string
  before(async () => {
    s3 = await startS3()
    folder = await mkdtemp(join(tmpdir(), 'tidings-faults-'))
  })
  // A proxy for each test: a request of the test before may arrive late.
  beforeEach(async () => {
    faults = await HttpFaults.start(s3.endpoint)
    const env = s3Environment(faults.endpoint, 'S3RVER', 'S3RVER')
    // biome-ignore lint/style/noProcessEnv: the SDK reads credentials there and nowhere else.
    Object.assign(process.env, env)
    const timeouts = { idleMs: IDLE_MS, callMs: 2_500, bytesPerSecondMin: 1_000_000, pauseMs: 10 }
    store = new S3Store({ bucket: s3.bucket, prefix: 'events' }, env, timeouts)
    await store.put('long', CONTENT, { signal })
    faults.requests.length = 0
  })
  afterEach(() => faults[Symbol.asyncDispose]())
  after(async () => {
    await s3[Symbol.asyncDispose]()
    await rm(folder, { recursive: true })
  })

  const always = (fault: HttpFault): void => {
    faults.decide = () => fault
  }
  const file = async (name: string) => {
    const path = join(folder, name)
    await writeFile(path, CONTENT)
    return { path, bytes: CONTENT.length }
  }
  const get = () => store.get('long', { signal, bytesMax: CONTENT.length })
  const list = async () => {
    for await (const _object of store.list('', { signal }));
  }

  test('repeats what failed for a moment: puts of buffers and files, gets, lists, deletes', async () => {
    const busy = said(503, 'SlowDown', 'Please reduce your request rate.')
    faults.inOrder(busy, busy, busy)
    await store.put('busy', CONTENT, { signal })
    faults.inOrder(busy, said(500, 'InternalError', 'We encountered an internal error.'))
    await store.put('busy-file', await file('busy'), { signal })
    faults.inOrder(busy)
    assert.deepEqual(await store.get('busy-file', { signal, bytesMax: CONTENT.length }), CONTENT)
    faults.inOrder({ kind: 'cut', afterBytes: 0 })
    await list()
    faults.inOrder(busy)
    await store.delete('busy', { signal })
    assert.equal(faults.requests.length, 4 + 3 + 2 + 2 + 2)
  })

  test('gives up after four attempts, and says what S3 said', async () => {
    always(said(500, 'InternalError', 'We encountered an internal error.'))
    const message =
      'put s3://archive/events/x: S3 responded 500: InternalError: We encountered an internal error.'
    const error = await failure(store.put('x', CONTENT, { signal }))
    assert.deepEqual([error.kind, error.message], ['unavailable', message])
    assert.equal(faults.requests.length, ATTEMPTS)
  })

  test('continues a get where it broke off', async () => {
    faults.inOrder({ kind: 'cut', afterBytes: 100_000 }, { kind: 'cut', afterBytes: 200_000 })
    assert.deepEqual(await get(), CONTENT)
    assert.equal(faults.requests.length, 3)
    // The bytes that were read already are not read again.
    faults.inOrder({ kind: 'cut', afterBytes: 300_000 }, { kind: 'cut', afterBytes: 399_999 })
    assert.deepEqual(await get(), CONTENT)
    assert.equal(faults.requests.length, 6)
  })

  test('leaves no file of a download that fails', async () => {
    always({ kind: 'cut', afterBytes: 1_000 })
    const path = join(folder, 'downloaded')
    await fails('unavailable', /get s3:.*\/long/, store.download('long', path, { signal }))
    assert.equal(faults.requests.length, ATTEMPTS)
    assert.equal((await readdir(folder)).includes('downloaded'), false)
    faults.inOrder({ kind: 'stall', afterBytes: 1_000 })
    assert.equal(await store.download('long', path, { signal }), CONTENT.length)
    assert.deepEqual(await readFile(path), CONTENT)
  })

  test('does not wait for a server that is silent, before or in a body', async () => {
    for (const fault of [{ kind: 'hang' }, { kind: 'stall', afterBytes: 10 }] as const) {
      always(fault)
      const watch = new Stopwatch()
      await fails('unavailable', /get s3:.*\/long: .*(inactivity|broke off)/, get())
      assert.ok(watch.ms < SILENT_MS_MAX, `${fault.kind}: ${watch.ms} ms`)
    }
    always({ kind: 'hang' })
    await fails('unavailable', /list s3:.*inactivity/, list())
    await fails('unavailable', /put s3:.*inactivity/, store.put('hung', CONTENT, { signal }))
  })

  test('does not wait for a server that stops reading, and closes the file', async () => {
    always({ kind: 'ignore' })
    const path = join(folder, 'unread')
    await writeFile(path, Buffer.alloc(30_000_000))
    const watch = new Stopwatch()
    await fails(
      'unavailable',
      /inactivity/,
      store.put('unread', { path, bytes: 30_000_000 }, { signal }),
    )
    assert.ok(watch.ms < SILENT_MS_MAX, `${watch.ms} ms`)
    assert.deepEqual(await openPaths(path), [])
  })

  test('ends a call that trickles, although bytes come', async () => {
    always({ kind: 'trickle', everyMs: 20 })
    const watch = new Stopwatch()
    await fails(
      'unavailable',
      /get s3:.*\/long: S3 is too slow: the call was ended after 3 s/,
      get(),
    )
    assert.ok(watch.ms < SILENT_MS_MAX, `${watch.ms} ms`)
    assert.equal(faults.requests.length, 1)
  })

  test('ends at once when the caller does', async () => {
    for (const fault of [{ kind: 'hang' }, { kind: 'stall', afterBytes: 10 }] as const) {
      always(fault)
      const watch = new Stopwatch()
      const leaving = AbortSignal.timeout(100)
      const getting = store.get('long', { signal: leaving, bytesMax: CONTENT.length })
      await fails('unavailable', /get s3:.*\/long: aborted/, getting)
      assert.ok(watch.ms < IDLE_MS, `${fault.kind}: ${watch.ms} ms`)
    }
  })

  test('a verified put detects a success without an object', async () => {
    faults.inOrder({ kind: 'lie' })
    await store.put('lost', CONTENT, { signal })
    await fails('missing', /lost/, store.get('lost', { signal, bytesMax: 10 }))
    faults.inOrder({ kind: 'lie' })
    const lost = describeContent('lost', CONTENT)
    const message = /lost is not in the store after a put that succeeded/
    await fails('unavailable', message, putVerified(store, lost, CONTENT, { signal }))
    await putVerified(store, lost, await file('kept'), { signal })
  })

  test('a verified put detects that only a part was stored', async () => {
    const name = 'cut-short'
    faults.decide = ({ method, headers }) => {
      if (method === 'PUT') headers['content-length'] = '1000'
      return { kind: method === 'PUT' ? 'lie' : 'pass' }
    }
    await writeFile(
      join(s3.directory, s3.bucket, 'events', `${name}._S3rver_object`),
      CONTENT.subarray(1),
    )
    const described = describeContent(name, CONTENT)
    const message = /cut-short was put, but in the store it has 699999 bytes, not 700000/
    await fails('unavailable', message, putVerified(store, described, CONTENT, { signal }))
  })

  test('what is not S3 is no empty list, and has no objects', async () => {
    always({ kind: 'status', status: 200, body: '<html><body>Sign in</body></html>' })
    await fails('unavailable', /the response is no list: is this S3\?/, list())
    await fails('unavailable', /is this S3\?/, get())
    always({ kind: 'status', status: 502, body: '<html><body>Bad Gateway</body></html>' })
    await fails('unavailable', /S3 responded 502/, list())
    always({ kind: 'status', status: 400, body: 'not XML' })
    await fails('unavailable', /S3 responded 400/, list())
  })

  test('does not keep a reply in memory that has no end', async () => {
    always({ kind: 'status', status: 500, body: `<Error><Code>${'x'.repeat(30_000_000)}` })
    await fails('unavailable', /the response is longer than 8388608 bytes/, list())
  })

  test('says what an operator should check, and no secrets', async () => {
    const cases = [
      [403, 'AccessDenied', 'denied', 's3:ListBucket'],
      [403, 'InvalidAccessKeyId', 'denied', 'access key'],
      [403, 'SignatureDoesNotMatch', 'denied', 'access key'],
      [400, 'ExpiredToken', 'denied', 'have expired'],
      [401, 'Unauthorized', 'denied', 's3:GetObject'],
      [403, 'QuotaExceeded', 'full', 'quota'],
      [507, 'XMinioStorageFull', 'full', 'space'],
      [507, 'SomethingElse', 'full', 'space'],
      [404, 'NoSuchBucket', 'unavailable', 'create the bucket'],
      [301, 'PermanentRedirect', 'unavailable', 'AWS_REGION'],
    ] as const
    for (const [status, code, kind, advice] of cases) {
      always(said(status, code, 'Words of S3', '<Token-0>SESSION-TOKEN</Token-0>'))
      const error = await failure(store.put('x', CONTENT, { signal }))
      assert.equal(error.kind, kind, code)
      const beginning = `put s3://archive/events/x: S3 responded ${status}: ${code}: Words of S3`
      assert.ok(error.message.startsWith(beginning), error.message)
      assert.ok(error.message.includes(advice), error.message)
      assert.doesNotMatch(inspect(error, { depth: 9, showHidden: true }), /SESSION-TOKEN/)
    }
    assert.equal(faults.requests.length, cases.length, 'none of these is repeated')
  })

  test('says where it could not connect', async () => {
    const gone = await HttpFaults.start(s3.endpoint)
    const { endpoint } = gone
    await gone[Symbol.asyncDispose]()
    // biome-ignore lint/style/noProcessEnv: the SDK reads the endpoint there.
    process.env['AWS_ENDPOINT_URL_S3'] = endpoint
    const env = { AWS_ENDPOINT_URL_S3: endpoint }
    const elsewhere = new S3Store({ bucket: 'archive', prefix: '' }, env, { pauseMs: 10 })
    const message = /^delete s3:\/\/archive\/x: connect ECONNREFUSED .*AWS_ENDPOINT_URL_S3/
    await fails('unavailable', message, elsewhere.delete('x', { signal }))
  })
})

function said(status: number, code: string, message: string, more = ''): HttpFault {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message>${more}</Error>`
  return { kind: 'status', status, body }
}

async function failure(work: Promise<unknown>): Promise<StoreError> {
  try {
    await work
  } catch (error) {
    if (error instanceof StoreError) return error
    throw error
  }
  throw new Error('it succeeded')
}

/** The descriptors of this process that are open for this file. */
async function openPaths(path: string): Promise<readonly string[]> {
  const names = await readdir('/proc/self/fd')
  const paths = await Promise.all(
    names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')),
  )
  return paths.filter((found) => found === path)
}
