import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { type EventApiUnderTest, pathOf, withEventApi } from '../../support/event-api.ts'
import { openClient, PROTOCOLS } from '../../support/http-client.ts'
import type { TestListener } from '../../support/listener.ts'
import type { Call } from '../../support/raw-http1.ts'
import { RawHttp1, requestHead } from '../../support/raw-http1.ts'
import { makeEvent } from '../../support/wire-event.ts'

const headers = { authorization: 'Bearer x', 'content-type': 'application/json' }

describe('requests over a connection', () => {
  let api: EventApiUnderTest
  let listener: TestListener

  withEventApi({
    begin: async (started) => {
      api = started
      listener = await api.listen()
      await api.call({ method: 'POST', at: 'a', body: makeEvent('a', 'e') })
    },
    end: async () => {
      assert.deepEqual(listener.bugs, [])
      await listener[Symbol.asyncDispose]()
    },
  })

  for (const protocol of PROTOCOLS) {
    const ask = async (call: Call) => {
      using client = await openClient(protocol, listener.port)
      return await client.request({ ...call, headers: { ...headers, ...call.headers } })
    }

    test(`${protocol}: a method that a path does not have gets a Status with 405`, async () => {
      for (const at of ['', 'a', 'a/e']) {
        for (const method of ['HEAD', 'OPTIONS', 'TRACE', 'SEARCH']) {
          const answer = await ask({ method, path: pathOf(at) })
          assert.equal(answer.status, 405, `${method} ${at}`)
          if (method === 'HEAD') assert.equal(answer.body.length, 0)
          else assert.equal(JSON.parse(answer.body.toString()).reason, 'MethodNotAllowed')
        }
      }
      for (const [method, at] of [
        ['POST', ''],
        ['DELETE', ''],
        ['PUT', 'a'],
        ['PATCH', 'a'],
        ['POST', 'a/e'],
      ] as const) {
        assert.equal((await ask({ method, path: pathOf(at) })).status, 405, `${method} ${at}`)
      }
    })

    test(`${protocol}: unknown query parameters are ignored`, async () => {
      const query = '?no=such&__proto__=x&constructor=y&limit=5&=&&%00=%ff'
      for (const at of ['', 'a', 'a/e']) {
        assert.equal((await ask({ path: pathOf(at) + query })).status, 200, at)
      }
    })

    test(`${protocol}: a warning with any characters arrives`, async () => {
      const name = `${protocol}-warned`
      const field = 'größe "\\\n\u0085📣'
      const body = JSON.stringify({ ...makeEvent('a', name), [field]: 1 })
      const answer = await ask({ method: 'POST', path: pathOf('a'), body })
      assert.equal(answer.status, 201)
      const bytes = Buffer.from(answer.headers['warning'] ?? '', 'latin1')
      assert.match(bytes.toString(), /^299 - "unknown field .*größe.*📣/)
      // A rejection has a text body, and Node writes headers in the encoding of their body.
      const refused = await ask({ method: 'POST', path: pathOf('a'), body })
      assert.equal(refused.status, 409)
      assert.equal(refused.headers['warning'], answer.headers['warning'])
      const many = Object.fromEntries(
        Array.from({ length: 500 }, (_, index) => [`${index}${'ß'.repeat(300)}`, 1]),
      )
      const long = await ask({
        method: 'POST',
        path: pathOf('a'),
        body: JSON.stringify({ ...makeEvent('a', `${name}-a-lot`), ...many }),
      })
      assert.equal(long.status, 201)
      assert.ok((long.headers['warning'] ?? '').length < 16 * 1024)
    })

    test(`${protocol}: names with any characters get 404`, async () => {
      const names = ['..', '%2e%2e', 'a%00b', '%f0%9f%93%a3', 'x'.repeat(1024), '__proto__', '%20']
      for (const name of names) {
        const path = pathOf(`a/${name}`)
        for (const method of ['GET', 'DELETE']) {
          const answer = await ask({ method, path })
          assert.equal(answer.status, 404, `${method} ${name.slice(0, 30)}`)
        }
        const patch = { 'content-type': 'application/merge-patch+json' }
        const patched = await ask({ method: 'PATCH', path, headers: patch, body: '{}' })
        assert.equal(patched.status, 404)
        const put = await ask({ method: 'PUT', path, body: JSON.stringify(makeEvent('a', 'e')) })
        assert.equal(put.status, 400)
      }
    })

    test(`${protocol}: a namespace with any characters is empty, and creates in it are rejected`, async () => {
      for (const namespace of ['..', 'a%00b', '%f0%9f%93%a3', 'x'.repeat(1024), '__proto__']) {
        const path = pathOf(namespace)
        assert.equal((await ask({ path })).status, 200)
        const posted = decodeURIComponent(namespace)
        const body = JSON.stringify(makeEvent(posted, 'e'))
        assert.equal((await ask({ method: 'POST', path, body })).status, 422)
      }
    })

    test(`${protocol}: long-names-in-paths: a name or namespace above the maximum length gets 404`, async () => {
      const long = 'x'.repeat(1025)
      for (const at of [long, `a/${long}`, `${long}/e`]) {
        for (const method of ['GET', 'PUT', 'POST', 'PATCH', 'DELETE']) {
          const body = method === 'GET' ? '' : JSON.stringify(makeEvent('a', 'e'))
          const answer = await ask({ method, path: pathOf(at), body })
          assert.equal(answer.status, 404, method)
          assert.ok(answer.body.length < 1_000)
        }
      }
    })

    test(`${protocol}: Expect: 100-continue gets a 100`, async () => {
      const answer = await ask({
        method: 'POST',
        path: pathOf('a'),
        headers: { expect: '100-continue' },
        body: JSON.stringify(makeEvent('a', `${protocol}-expected`)),
      })
      assert.equal(answer.status, 201)
      assert.deepEqual(answer.informational, [100])
    })
  }

  test('a resourceVersion in the far future is repeated in the message as it was sent', async () => {
    using client = await openClient('h1', listener.port)
    const version = 'resourceVersion=999999999999999999'
    for (const path of [
      `${pathOf('a')}?${version}`,
      `${pathOf('a')}?${version}&resourceVersionMatch=Exact&limit=1`,
      `${pathOf('a/e')}?${version}`,
    ]) {
      const answer = await client.request({ path, headers })
      assert.equal(answer.status, 504, path)
      const { message } = JSON.parse(answer.body.toString())
      assert.match(message, /Too large resource version: 999999999999999999, current: \d+$/, path)
    }
  })

  test('a compressed body gets 415, and a malformed chunked body gets 400, each with a Status', async () => {
    const body = gzipSync(JSON.stringify(makeEvent('a', 'zipped')))
    using client = await openClient('h1', listener.port)
    const sent = { ...headers, 'content-encoding': 'gzip' }
    const refused = await client.request({ method: 'POST', path: pathOf('a'), headers: sent, body })
    assert.equal(refused.status, 415)
    assert.match(JSON.parse(refused.body.toString()).message, /encoded as "gzip"/)

    const raw = await RawHttp1.open(listener.port)
    const chunked = { ...headers, 'transfer-encoding': 'chunked' }
    raw.send(requestHead({ method: 'POST', path: pathOf('a'), headers: chunked }))
    raw.send('5\r\n{"a":\r\nno-size\r\n')
    const answer = await raw.readAnswer()
    assert.equal(answer.status, 400)
    assert.equal(JSON.parse(answer.body.toString()).reason, 'BadRequest')
    await raw.closed
  })

  test('a request with Expect: 100-continue that is rejected anyway gets no 100', async () => {
    const connection = await RawHttp1.open(listener.port)
    const head = `POST ${pathOf('a')} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer x\r\n`
    connection.send(
      `${head}content-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 2000000\r\n\r\n`,
    )
    const answer = await connection.readAnswer('POST')
    connection.close()
    assert.equal(answer.status, 413)
    assert.deepEqual(answer.informational, [])
  })
})
