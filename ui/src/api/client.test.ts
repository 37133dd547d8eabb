import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import type { ApiError } from './api-error.ts'
import { ApiClient, type ClientOptions, isAborted } from './client.ts'

/** A client of a server that responds like this. */
async function clientOf(
  t: TestContext,
  listener: http.RequestListener,
  options: Partial<ClientOptions> = {},
): Promise<ApiClient> {
  const server = http.createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return new ApiClient({ base: `http://127.0.0.1:${port}/`, token: 'secret', ...options })
}

async function failureOf(response: Promise<unknown>): Promise<ApiError> {
  return response.then(
    () => assert.fail('it did not fail'),
    (error) => error,
  )
}

/** Sends the beginning of a body. */
const begin: http.RequestListener = (_request, response) => {
  response.writeHead(200, { 'content-length': '100' }).write('{"items":')
}

test('treats a truncated body as no response', async (t) => {
  const client = await clientOf(t, (_request, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{"items":', () => response.destroy())
  })
  for (const request of [client.get('list'), client.getText('readyz')]) {
    const { reason, message } = await failureOf(request)
    assert.deepEqual([reason, message], ['NoResponse', 'The server cannot be reached.'])
  }
})

test('rejects with an AbortError when cancelled in the middle of a body', async (t) => {
  const client = await clientOf(t, begin)
  for (const ask of ['get', 'getText'] as const) {
    const stop = new AbortController()
    setTimeout(() => stop.abort(), 100)
    assert.ok(isAborted(await failureOf(client[ask]('list', { signal: stop.signal }))), ask)
  }
})

test('gives up after the time of the request', async (t) => {
  const client = await clientOf(t, begin)
  const { reason, message } = await failureOf(client.get('list', { timeoutMs: 100 }))
  assert.deepEqual([reason, message], ['Timeout', 'The server did not respond in time.'])
})

test('aborts requests when the session ends', async (t) => {
  const session = new AbortController()
  const client = await clientOf(t, begin, { signal: session.signal })
  setTimeout(() => session.abort(), 100)
  assert.ok(isAborted(await failureOf(client.get('list'))))
  assert.ok(isAborted(await failureOf(client.get('list'))))
})

test("reports a proxy's page in place of JSON", async (t) => {
  const client = await clientOf(t, (_request, response) => response.end('<h1>Log in</h1>'))
  assert.match((await failureOf(client.get('list'))).message, /a proxy may have sent it/)
})

test("ends the session only when the user's own cluster rejects it", async (t) => {
  const refuse: http.RequestListener = (_request, response) => response.writeHead(401).end()
  const ends = async (cluster: string, path: string, isAside = false): Promise<boolean> => {
    let hasEnded = false
    const onUnauthorized = (): void => {
      hasEnded = true
    }
    const client = await clientOf(t, refuse, { cluster, onUnauthorized })
    assert.equal((await failureOf(client.get(path, { isAside }))).code, 401)
    return hasEnded
  }
  assert.equal(await ends('', 'api/v1/events'), true)
  assert.equal(await ends('', 'clusters/*/api/v1/events'), true)
  assert.equal(await ends('', 'readyz', true), false)
  assert.equal(await ends('', 'clusters/prod-eu/api/v1/events'), false)
  assert.equal(await ends('prod-eu', 'clusters/prod-eu/api/v1/events'), true)
  assert.equal(await ends('prod-eu', 'api/v1/events'), false)
  assert.equal(await ends('prod-eu', 'clusters/prod-us/api/v1/events'), false)
})

test("never sends one cluster's token to another", async (t) => {
  const sent: Record<string, string | undefined> = {}
  const listener: http.RequestListener = (request, response) => {
    sent[new URL(request.url ?? '', 'http://x').pathname] = request.headers.authorization
    response.end('{}')
  }
  const events = 'api/v1/events'
  const paths = ['', 'clusters/prod/', 'clusters/prod-2/', 'clusters/*/'].map(
    (prefix) => `${prefix}${events}`,
  )
  const bound = await clientOf(t, listener, { tokenOf: 'prod' })
  for (const path of [...paths, 'metrics', 'ui/sign-in']) await bound.get(path)
  const withToken = Object.keys(sent).filter((path) => sent[path] !== undefined)
  assert.deepEqual(withToken, ['/clusters/prod/api/v1/events'])
  assert.equal(Object.keys(sent).length, 6)
  const own = await clientOf(t, listener)
  for (const path of paths) await own.get(path)
  for (const path of paths) assert.equal(sent[`/${path}`], 'Bearer secret', path)
})
