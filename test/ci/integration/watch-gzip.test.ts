import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'
import { createGunzip } from 'node:zlib'
import { type EventApiUnderTest, pathOf, token, withEventApi } from '../../support/event-api.ts'
import { openClient, PROTOCOLS } from '../../support/http-client.ts'
import { makeEvent, type WatchFrame } from '../../support/wire-event.ts'

const EVENTS = 3_000
const LIST = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
const WITH_BOOKMARKS = `${LIST}&allowWatchBookmarks=true`
const gzip = { authorization: `Bearer ${token}`, 'accept-encoding': 'gzip' }

describe('a watch that begins with a list', () => {
  let api: EventApiUnderTest

  withEventApi({
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
