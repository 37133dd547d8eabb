import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { coreGroup, eventsGroup } from '../../api/event-groups.ts'
import { eventsOpenApi } from '../../codec/openapi/openapi-groups.ts'
import { makeRequest } from '../../gate/request.fixture.ts'
import { targetOf } from '../../gate/target.fixture.ts'
import type { Response } from '../../http/exchange.ts'
import { openApiService } from './openapi.ts'

const service = openApiService({
  groups: [eventsGroup('events.k8s.io'), coreGroup].map(eventsOpenApi),
  release: 'v1.37.0',
})
const PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
const PROTOBUF_V3 = PROTOBUF.replace('v2', 'v3')

async function send(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  method = 'GET',
): Promise<Response> {
  const { pathname, searchParams } = new URL(url, 'http://host')
  const handler = service.find(targetOf(pathname))
  assert.ok(handler, url)
  return handler(
    makeRequest({
      method,
      path: pathname,
      query: searchParams,
      headers,
      peer: { isLoopback: true },
    }),
    { user: { name: 'ada', groups: [] }, authorize: async () => {} },
  )
}

async function urlOf(place: string): Promise<string> {
  const { body } = await send('/openapi/v3')
  return JSON.parse(String(body)).paths[place].serverRelativeURL
}

describe('openApiService', () => {
  test('the index of version 3 lists a document for each group, with its hash', async () => {
    const { status, headers, body } = await send('/openapi/v3')
    assert.equal(status, 200)
    assert.equal(headers['content-type'], 'application/json')
    const { paths } = JSON.parse(String(body))
    assert.deepEqual(Object.keys(paths), ['apis/events.k8s.io/v1', 'api/v1'])
    for (const [place, { serverRelativeURL }] of Object.entries<{ serverRelativeURL: string }>(
      paths,
    )) {
      const [path, hash] = serverRelativeURL.split('?hash=')
      assert.equal(path, `/openapi/v3/${place}`)
      assert.match(hash ?? '', /^[0-9A-F]{128}$/)
      const response = await send(serverRelativeURL)
      assert.equal(response.headers['etag'], `"${hash}"`)
      assert.equal(JSON.parse(String(response.body)).openapi, '3.0.0')
    }
  })

  test('a document requested by its hash may be cached for good', async () => {
    const { headers } = await send(await urlOf('api/v1'))
    assert.equal(headers['cache-control'], 'public, immutable')
    assert.ok(Date.parse(headers['expires'] ?? '') > Date.now() + 364 * 24 * 3600 * 1000)
    assert.equal(headers['vary'], 'Accept')
  })

  test('outdated-openapi-hash: without a hash, or with an outdated one, the document may not be cached', async () => {
    const { body } = await send(await urlOf('api/v1'))
    for (const url of ['/openapi/v3/api/v1', '/openapi/v3/api/v1?hash=FEED']) {
      const response = await send(url)
      assert.equal(response.status, 200)
      assert.equal(response.headers['cache-control'], undefined)
      assert.equal(response.headers['expires'], undefined)
      assert.equal(response.body, body)
    }
  })

  test('a client with the current ETag gets a 304 without a body', async () => {
    for (const [url, accept] of [
      ['/openapi/v2', 'application/json'],
      ['/openapi/v2', PROTOBUF],
      ['/openapi/v3', '*/*'],
      ['/openapi/v3/api/v1', 'application/json'],
    ] as const) {
      const first = await send(url, { accept })
      const etag = first.headers['etag'] ?? ''
      const again = await send(url, { accept, 'if-none-match': etag })
      assert.deepEqual([again.status, again.body, again.headers['etag']], [304, '', etag])
      assert.equal((await send(url, { accept, 'if-none-match': '"other"' })).status, 200)
    }
  })

  test('version 2 is available as JSON, and as protobuf under two media types', async () => {
    const json = await send('/openapi/v2')
    assert.equal(json.headers['content-type'], 'application/json')
    assert.equal(JSON.parse(String(json.body)).swagger, '2.0')
    for (const name of [PROTOBUF, PROTOBUF.replace('v2.v1', 'v2@v1')]) {
      const { headers, body } = await send('/openapi/v2', { accept: `${name},application/json` })
      assert.equal(headers['content-type'], PROTOBUF)
      assert.notEqual(headers['etag'], json.headers['etag'])
      assert.ok(Buffer.isBuffer(body))
    }
    const preferring = await send('/openapi/v2', { accept: `${PROTOBUF};q=0.5, application/*` })
    assert.equal(preferring.headers['content-type'], 'application/json')
  })

  test('openapi-v3-is-json: a document of version 3 is not available as protobuf', async () => {
    const url = await urlOf('apis/events.k8s.io/v1')
    assert.equal((await send(url, { accept: PROTOBUF_V3 })).status, 406)
    const { headers } = await send(url, { accept: `${PROTOBUF_V3},application/json` })
    assert.equal(headers['content-type'], 'application/json')
  })

  test('an unsupported format is a 406 without a body', async () => {
    for (const url of ['/openapi/v2', '/openapi/v3/api/v1']) {
      const { status, body } = await send(url, { accept: 'application/xml' })
      assert.deepEqual([status, body], [406, ''])
    }
  })

  test('the index is JSON, whatever Accept is sent', async () => {
    for (const accept of [PROTOBUF_V3, 'application/vnd.kubernetes.protobuf']) {
      const { status, headers } = await send('/openapi/v3', { accept })
      assert.deepEqual([status, headers['content-type']], [200, 'application/json'])
    }
  })

  test('only GET and HEAD are allowed', async () => {
    assert.equal((await send('/openapi/v2', {}, 'HEAD')).status, 200)
    await assert.rejects(send('/openapi/v2', {}, 'POST'), { code: 405 })
  })

  test('outdated-openapi-hash: a group that is not served is a 404; other paths belong to other services', async () => {
    for (const path of ['/openapi/v3/apis/apps/v1', '/openapi/v3/apis', '/openapi/v3/x']) {
      await assert.rejects(send(path), { code: 404 }, path)
    }
    for (const path of ['/openapi', '/openapi/', '/openapi/v1', '/openapi/v3x', '/', '']) {
      assert.equal(service.find(targetOf(path)), undefined, path)
    }
    assert.equal(service.isOpenToHost, false)
  })
})
