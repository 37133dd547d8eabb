import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Request } from '../http/exchange.ts'
import { createGate, type User } from './gate.ts'

const ada: User = { name: 'ada', uid: '7', groups: ['system:authenticated'] }
const gate = createGate({ userOf: (token) => (token === 'secret' ? ada : undefined) })
const open = { isOpenToHost: true }
const closed = { isOpenToHost: false }

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

describe('createGate', () => {
  test('lets the host in where it may, and says who it is', async () => {
    const user = await gate.authenticate(request(true), open)
    assert.deepEqual(user, { name: 'system:host', groups: ['system:unauthenticated'] })
  })

  test('keeps the host out of what is not open to it', async () => {
    await assert.rejects(gate.authenticate(request(true), closed), unauthorized)
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

  test('lets in whoever shows a token, from anywhere, to everything', async () => {
    const shown = { authorization: 'Bearer secret', 'x-forwarded-for': '198.51.100.7' }
    for (const access of [open, closed]) {
      assert.equal(await gate.authenticate(request(false, shown), access), ada)
    }
  })

  test('takes any case of the scheme, several spaces, and text after the token', async () => {
    for (const authorization of ['bearer secret', 'BEARER   secret', 'Bearer secret and more']) {
      assert.equal(await gate.authenticate(request(false, { authorization }), closed), ada)
    }
  })

  test('refuses a token that nobody knows, also where the host may come in', async () => {
    for (const authorization of ['Bearer wrong', 'bEARER\twrong', 'Bearer secret, Bearer secret']) {
      await assert.rejects(gate.authenticate(request(true, { authorization }), open), unauthorized)
    }
  })

  test('takes what holds no token for no credentials', async () => {
    for (const authorization of ['', 'Basic YTpi', 'Bearer', 'Bearer ', 'secret', 'Bearersecret']) {
      const user = await gate.authenticate(request(true, { authorization }), open)
      assert.equal(user.name, 'system:host')
      await assert.rejects(
        gate.authenticate(request(true, { authorization }), closed),
        unauthorized,
      )
    }
  })
})
