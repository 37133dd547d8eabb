import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { createGunzip, gunzipSync } from 'node:zlib'
import { StatusError } from '../../../src/api/status.ts'
import { WatchGzip } from '../../../src/endpoints/response/watch-gzip.ts'
import type { Response } from '../../../src/http/exchange.ts'
import type { Pull } from '../../../src/lib/pull.ts'
import { Lane } from '../../../src/lib/run-queue.ts'
import { findKubectl, RECORDED_WITH, whyNot } from '../../nightly/kubectl/kubectl.ts'
import { type EventApiUnderTest, pathOf, token, withEventApi } from '../../support/event-api.ts'
import { openClient, PROTOCOLS } from '../../support/http-client.ts'
import { makeEvent, type WatchFrame } from '../../support/wire-event.ts'

const EVENTS = 3_000
const LIST = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
const WITH_BOOKMARKS = `${LIST}&allowWatchBookmarks=true`
const watchList = Object.fromEntries(new URLSearchParams(WITH_BOOKMARKS))
const gzip = { authorization: `Bearer ${token}`, 'accept-encoding': 'gzip' }

const revoked = new StatusError('Forbidden', 'revoked')

describe('a watch that begins with a list', () => {
  let api: EventApiUnderTest

  /** Revokes the access of the newest watch. */
  let refuse: (why: StatusError) => void

  withEventApi({
    options: {
      accessChecks: {
        add: (_check, end) => {
          refuse = end
          return { [Symbol.dispose]: () => {} }
        },
      },
    },
    begin: async (started) => {
      api = started
      await api.fill('many', EVENTS)
    },
  })

  for (const protocol of PROTOCOLS) {
    test(`is gzipped without a delay of changes, and ends properly, over ${protocol}`, async () => {
      await using listener = await api.listen()
      using client = await openClient(protocol, listener.port)
      const path = `${pathOf('many')}?${WITH_BOOKMARKS}&timeoutSeconds=3`
      const response = await client.open({ path, headers: gzip })
      assert.equal(response.status, 200)
      const sent = { bytes: 0 }
      const frames = framesOf(gunzipped(response.read, sent))
      for (let index = 0; index < EVENTS; index++) {
        const { type, object } = await nextOf(frames)
        assert.deepEqual([type, object.metadata.name], ['ADDED', nameOf(index)])
      }
      const bookmark = await nextOf(frames)
      assert.equal(bookmark.type, 'BOOKMARK')
      assert.equal(bookmark.object.metadata.annotations?.['k8s.io/initial-events-end'], 'true')
      assert.ok(sent.bytes < (EVENTS * 500) / 3, `${sent.bytes} bytes for ${EVENTS} events`)
      for (const name of ['later', 'latest']) {
        const body = makeEvent('many', `${name}-${protocol}`)
        assert.equal((await api.call({ method: 'POST', at: 'many', body })).status, 201)
        const { type, object } = await nextOf(frames)
        assert.deepEqual([type, object.metadata.name], ['ADDED', `${name}-${protocol}`])
        await api.call({ method: 'DELETE', at: `many/${name}-${protocol}` })
        assert.equal((await nextOf(frames)).type, 'DELETED')
      }
      assert.equal((await frames.next()).done, true)
    })
  }

  // one-gzip-stream
  test('is read by curl', async () => {
    await using listener = await api.listenPlain()
    const path = `${pathOf('many')}?${WITH_BOOKMARKS}&timeoutSeconds=1`
    const header = `authorization: Bearer ${token}`
    const url = `http://127.0.0.1:${listener.port}${path}`
    const { stdout } = await promisify(execFile)(
      'curl',
      ['--silent', '--show-error', '--include', '--compressed', '--header', header, url],
      { maxBuffer: 64 * 1024 * 1024 },
    )
    const [head = '', body = ''] = stdout.split('\r\n\r\n')
    assert.match(head, /^content-encoding: gzip$/im)
    assert.match(head, /^vary: Accept-Encoding$/im)
    assert.equal(body.trimEnd().split('\n').length, EVENTS + 1)
  })

  // Go holds back what no empty block follows, until it has 32 KiB or the stream ends.
  test('reaches kubectl without a delay', { skip: whyNot(RECORDED_WITH) }, async () => {
    await using listener = await api.listen()
    const path = `${pathOf('few')}?${WITH_BOOKMARKS}&timeoutSeconds=30`
    const server = `--server=https://127.0.0.1:${listener.port}`
    const flags = ['--kubeconfig=/dev/null', '--insecure-skip-tls-verify', `--token=${token}`]
    const kubectl = spawn(
      findKubectl(RECORDED_WITH) ?? '',
      [server, ...flags, 'get', '--raw', path],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    try {
      const frames = framesOf(kubectl.stdout)
      assert.equal((await nextOf(frames)).type, 'BOOKMARK')
      for (const name of ['later', 'latest']) {
        const body = makeEvent('few', name)
        assert.equal((await api.call({ method: 'POST', at: 'few', body })).status, 201)
        const { type, object } = await nextOf(frames)
        assert.deepEqual([type, object.metadata.name], ['ADDED', name])
      }
    } finally {
      kubectl.kill()
    }
  })

  for (const piece of [1, 2]) {
    test(`ends with a readable ERROR when access is revoked while piece ${piece} is compressed`, async (t) => {
      const { list } = WatchGzip.prototype
      let pieces = 0
      t.mock.method(WatchGzip.prototype, 'list', function (this: WatchGzip, frames: Buffer) {
        const compressed = list.call(this, frames)
        pieces += 1
        if (pieces === piece) refuse(revoked)
        return compressed
      })
      const { body } = await api.ask({ at: 'many', query: watchList, headers: gzip })
      const types = await typesOf(body)
      assert.equal(pieces, piece)
      assert.equal(types.pop(), 'ERROR')
      assert.deepEqual(new Set(types), new Set(['ADDED']))
      assert.ok(types.length < EVENTS)
    })
  }

  test('sends only an ERROR when access is revoked while the first piece waits for its turn', async (t) => {
    const { next } = Lane.prototype
    t.mock.method(Lane.prototype, 'enter', () => undefined) // The list itself does not wait.
    t.mock.method(Lane.prototype, 'next', function (this: Lane, signal?: AbortSignal) {
      if (this.name === 'tester') refuse(revoked)
      return next.call(this, signal)
    })
    const { body } = await api.ask({ at: 'many', query: watchList, headers: gzip })
    assert.deepEqual(await typesOf(body), ['ERROR'])
  })

  test('ends with a readable ERROR when access is revoked before its bookmark is taken', async () => {
    const { body } = await api.ask({ at: 'none', query: watchList, headers: gzip })
    const pull = body as Response['body'] & Pull<Buffer>
    const { promise: ready, resolve: wake } = Promise.withResolvers<void>()
    assert.equal(pull.take(wake), undefined)
    await ready
    refuse(revoked)
    assert.deepEqual(await typesOf(body), ['BOOKMARK', 'ERROR'])
  })

  test('is not gzipped unless the client accepts it and gets a bookmark after the list', async () => {
    for (const [query, headers] of [
      [WITH_BOOKMARKS, { 'accept-encoding': 'br' }],
      [WITH_BOOKMARKS, {}],
      [LIST, gzip],
      ['watch=true&resourceVersion=1&allowWatchBookmarks=true', gzip],
    ] as const) {
      const end = new AbortController()
      const watch = await api.ask({
        at: 'many',
        query: Object.fromEntries(new URLSearchParams(query)),
        headers,
        signal: end.signal,
      })
      assert.equal(watch.headers['content-encoding'], undefined, query)
      end.abort()
    }
  })
})

async function typesOf(body: Response['body']): Promise<string[]> {
  const chunks: Buffer[] = []
  for await (const chunk of body as AsyncIterable<Buffer>) chunks.push(chunk)
  const lines = gunzipSync(Buffer.concat(chunks)).toString().trimEnd().split('\n')
  return lines.map((line) => JSON.parse(line).type)
}

function nameOf(index: number): string {
  return `e-${String(index).padStart(6, '0')}`
}

async function nextOf(frames: AsyncIterator<WatchFrame, undefined>): Promise<WatchFrame> {
  const { value } = await frames.next()
  assert.ok(value, 'the watch has ended')
  return value
}

async function* gunzipped(
  read: () => Promise<Buffer | undefined>,
  sent: { bytes: number },
): AsyncGenerator<Buffer> {
  const gunzip = createGunzip()
  const feed = async (): Promise<void> => {
    for (let chunk = await read(); chunk !== undefined; chunk = await read()) {
      sent.bytes += chunk.length
      gunzip.write(chunk)
    }
    gunzip.end()
  }
  const feeding = feed()
  feeding.catch((error) => gunzip.destroy(error))
  yield* gunzip
  await feeding
}

async function* framesOf(chunks: AsyncIterable<Buffer>): AsyncGenerator<WatchFrame, undefined> {
  let rest = ''
  for await (const chunk of chunks) {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) yield JSON.parse(line)
  }
  return undefined
}
