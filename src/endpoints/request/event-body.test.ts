import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StatusError } from '../../api/status.ts'
import { makeRequest } from '../../gate/request.fixture.ts'
import type { Request } from '../../http/exchange.ts'
import { checkName, receiveBody, receiveBytes, yieldIfLong } from './event-body.ts'

function request(body: Buffer, headers: Request['headers'] = {}): Request {
  return makeRequest({
    method: 'POST',
    path: '',
    headers,
    peer: { isLoopback: true },
    body: async () => body,
  })
}

test('smaller-bodies: a body that is too large for the datastore is refused before it is decoded', async () => {
  const fits = Buffer.alloc(1_048_576)
  assert.equal((await receiveBody(request(fits))).bytes, fits)
  const tooLarge = Buffer.alloc(1_048_577)
  for (const receive of [receiveBody, receiveBytes]) {
    await assert.rejects(receive(request(tooLarge)), {
      reason: 'RequestEntityTooLarge',
      message: 'Request entity too large: limit is 1048576',
    })
  }
})

test('encoded-bodies-are-refused: a compressed body is a 415 that names Content-Encoding', async () => {
  for (const coding of ['gzip', 'GZIP', 'br', 'identity, gzip', 'x'.repeat(5000)]) {
    for (const receive of [receiveBody, receiveBytes]) {
      await assert.rejects(
        receive(request(Buffer.from('{}'), { 'content-encoding': coding })),
        (error) =>
          error instanceof StatusError &&
          error.code === 415 &&
          error.message.includes('Content-Encoding') &&
          error.message.length < 1000,
        coding,
      )
    }
  }
  for (const coding of ['', 'identity', 'Identity']) {
    const plain = Buffer.from('{}')
    assert.equal(await receiveBytes(request(plain, { 'content-encoding': coding })), plain)
  }
})

test('yieldIfLong: a long body yields to the event loop, a short one does not', async () => {
  for (const [length, expected] of [
    [1000, ['continued', 'tick']],
    [200_000, ['tick', 'continued']],
  ] as const) {
    const order: string[] = []
    const tick = new Promise<void>((resolve) => {
      setImmediate(() => resolve(void order.push('tick')))
    })
    await yieldIfLong(Buffer.alloc(length))
    order.push('continued')
    await tick
    assert.deepEqual(order, expected)
  }
})

test('checkName: an error about a wrong name truncates the name', () => {
  const event = { metadata: { name: 'x'.repeat(3_000_000) } }
  assert.throws(
    () => checkName(event, 'a'),
    (error) =>
      error instanceof StatusError &&
      error.message.startsWith('the name of the object (xxx') &&
      error.message.length < 10_000,
  )
})
