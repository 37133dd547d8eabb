import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Request } from '../http/exchange.ts'
import { hostGate } from './gate.ts'

const gate = hostGate()
const open = { isOpenToHost: true }

function request(isLoopback: boolean, headers: Record<string, string> = {}): Request {
  return {
    method: 'GET',
    path: '/livez',
    query: new URLSearchParams(),
    headers,
    peer: { address: '', isLoopback, clientCertificate: () => undefined },
    signal: new AbortController().signal,
    body: async () => Buffer.alloc(0),
  }
}

const unauthorized = { reason: 'Unauthorized', code: 401 }

describe('hostGate', () => {
  test('lets the host in where it may, and says who it is', async () => {
    const user = await gate.authenticate(request(true), open)
    assert.deepEqual(user, { name: 'system:host', groups: ['system:unauthenticated'] })
  })

  test('keeps the host out of what is not open to it', async () => {
    await assert.rejects(gate.authenticate(request(true), { isOpenToHost: false }), unauthorized)
  })

  test('keeps everybody else out', async () => {
    await assert.rejects(gate.authenticate(request(false), open), unauthorized)
  })

  test('takes nothing that came through a proxy for local', async () => {
    for (const name of [
      'forwarded',
      'x-forwarded-for',
      'x-forwarded-host',
      'x-remote-user',
      'x-real-ip',
      'via',
    ]) {
      await assert.rejects(gate.authenticate(request(true, { [name]: '' }), open), unauthorized)
    }
  })

  test('refuses a token it cannot check, and overlooks what is none', async () => {
    const withHeader = (authorization: string): Promise<unknown> =>
      gate.authenticate(request(true, { authorization }), open)
    await assert.rejects(withHeader('Bearer abc'), unauthorized)
    await assert.rejects(withHeader('bEARER\tabc'), unauthorized)
    await withHeader('Basic YTpi')
    await withHeader('Bearer ')
  })
})
