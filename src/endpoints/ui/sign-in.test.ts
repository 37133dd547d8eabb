import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { makeRequest } from '../../gate/request.fixture.ts'
import { readTarget } from '../../gate/target.ts'
import { ANONYMOUS } from '../../gate/user.ts'
import type { Request, Response } from '../../http/exchange.ts'
import { signInService } from './sign-in.ts'

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' }
const caller = { user: ANONYMOUS, authorize: async () => {} }

const service = signInService({ redeem: (code) => (code === 'right' ? 'secret' : undefined) })

async function ask(
  body: string,
  { method = 'POST', headers = JSON_TYPE as Request['headers'] } = {},
): Promise<Response> {
  const request = makeRequest({
    method,
    path: '/ui/sign-in',
    headers,
    body: async () => Buffer.from(body),
  })
  const handler = service.find(readTarget(request, 'local'))
  assert.ok(handler)
  return handler(request, caller)
}

describe('signing in by a code', () => {
  test('returns the token for a valid code, and no cache may store it', async () => {
    const { status, headers, body } = await ask('{"code":"right"}')
    assert.equal(status, 200)
    assert.deepEqual(JSON.parse(String(body)), { token: 'secret' })
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['content-type'], 'application/json')
    assert.match(headers['content-security-policy'] ?? '', /default-src 'none'/)
  })

  test('returns a 401 that does not quote a wrong code', async () => {
    await assert.rejects(ask('{"code":"wr0ng"}'), ({ code, message }) => {
      assert.equal(code, 401)
      assert.doesNotMatch(message, /wr0ng/)
      return true
    })
  })

  test('returns a 400 that does not quote a malformed body', async () => {
    for (const body of ['', 'c0de', '{"code":', '"c0de"', '[]', 'null', '{"code":1}', '{}']) {
      await assert.rejects(ask(body), ({ code, message }) => {
        assert.equal(code, 400)
        assert.doesNotMatch(message, /c0de/)
        return true
      })
    }
    await assert.rejects(ask('{"__proto__":{"code":"right"}}'), { code: 400 })
  })

  test('accepts only POST and JSON', async () => {
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', undefined]) {
      await assert.rejects(ask('{"code":"right"}', { headers: { 'content-type': type } }), {
        code: 415,
      })
    }
    for (const method of ['GET', 'PUT']) {
      await assert.rejects(ask('{"code":"right"}', { method }), { code: 405 })
    }
  })

  test('marks its bodies as secret, and serves no other path', () => {
    assert.equal(service.hasSecretBodies, true)
    for (const path of ['/ui/sign-in/', '/ui/sign-i', '/ui/']) {
      const target = readTarget({ method: 'POST', path, query: new URLSearchParams() }, 'local')
      assert.equal(service.find(target), undefined)
    }
  })
})
