import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { Client, type Outgoing } from './client.ts'

const WATCH: Outgoing = {
  method: 'GET',
  path: '/',
  headers: {},
  payload: undefined,
  watchMs: 5000,
  framesExpected: 1,
}

/** A server with the given handler, and a client of it. */
async function start(
  answer: http.RequestListener,
): Promise<AsyncDisposable & { readonly client: Client }> {
  const server = http.createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = new Client(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  return {
    client,
    [Symbol.asyncDispose]: async () => {
      client[Symbol.dispose]()
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

describe('Client', () => {
  test('closes an open stream soon after the last expected line', async () => {
    await using server = await start((_, response) => response.write('one\n'))
    const startedAt = performance.now()
    const { body, ended } = await server.client.send(WATCH)
    assert.equal(body.toString(), 'one\n')
    assert.equal(ended, false)
    assert.ok(performance.now() - startedAt < 2000)
  })

  test('reads an unexpected extra line', async () => {
    await using server = await start((_, response) => {
      response.write('one\n')
      setTimeout(() => response.write('two\n'), 20)
    })
    const { body } = await server.client.send(WATCH)
    assert.equal(body.toString(), 'one\ntwo\n')
  })

  test('reports the end of a stream, also when all its lines have arrived', async () => {
    await using server = await start((_, response) => response.end('one\n'))
    const { ended } = await server.client.send(WATCH)
    assert.equal(ended, true)
  })

  test('waits for missing lines no longer than the step allows', async () => {
    await using server = await start((_, response) => response.write('half'))
    const { body, ended } = await server.client.send({ ...WATCH, watchMs: 10 })
    assert.equal(body.toString(), 'half')
    assert.equal(ended, false)
  })

  test('waits longer than the recorded time for what is expected', async () => {
    const frame = Buffer.from([0, 0, 0, 2, 0x61, 0x62])
    await using server = await start((_, response) => {
      response.writeHead(200, { 'content-type': 'application/vnd.kubernetes.protobuf' })
      response.write(frame.subarray(0, 5))
      setTimeout(() => response.write(frame.subarray(5)), 200)
    })
    const { body, ended } = await server.client.send({ ...WATCH, watchMs: 100 })
    assert.deepEqual(body, frame)
    assert.equal(ended, false)
  })

  test('sends the given request, and a response that breaks off is an error', async () => {
    await using server = await start((request, response) => {
      assert.equal(request.method, 'PATCH')
      assert.equal(request.headers['content-length'], '2')
      response.writeHead(200, { 'content-length': '10' })
      response.write('half')
      setTimeout(() => request.socket.destroy(), 20)
    })
    const { watchMs: _, ...plain } = WATCH
    await assert.rejects(server.client.send({ ...plain, method: 'PATCH', payload: 'ab' }))
  })
})
