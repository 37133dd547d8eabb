import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { unauthorized, unavailable } from '../../api/status.ts'
import type { Request } from '../../http/exchange.ts'
import { makeRequest } from '../request.fixture.ts'
import { bearerTokens, type TokenAuthenticator } from './bearer-token.ts'

describe('tokens of clusters', () => {
  const requestWith = (token: string): Request =>
    makeRequest({ headers: { authorization: `Bearer ${token}` }, peer: { address: '192.0.2.1' } })
  const asked: string[] = []
  const origins: TokenAuthenticator = {
    userOf: async (token, from, cluster) => {
      asked.push(`${token} ${from} ${cluster}`)
      return token.startsWith('theirs') ? { name: token, groups: [], origin: cluster } : undefined
    },
  }
  const failing = (error: Error): TokenAuthenticator => ({
    userOf: () => {
      throw error
    },
  })
  const own: TokenAuthenticator = {
    userOf: (token) => (token === 'ours' ? { name: 'ada', groups: [] } : undefined),
  }
  const late: TokenAuthenticator = { userOf: async (token, from) => own.userOf(token, from, '') }
  const authenticate = async (kinds: TokenAuthenticator[], token: string): Promise<unknown> => {
    asked.length = 0
    const { authenticate: run } = bearerTokens(kinds, origins)
    return (await run(requestWith(token), { cluster: 'a' }))?.origin
  }

  test('a token that is known here is not sent to a cluster', async () => {
    for (const kind of [own, late]) {
      assert.equal(await authenticate([kind], 'ours'), undefined)
      assert.deepEqual(asked, [])
    }
  })

  test('a token that is unknown or invalid here is sent to the requested cluster', async () => {
    for (const kinds of [[], [own], [late], [failing(unauthorized())]]) {
      assert.equal(await authenticate(kinds, 'theirs'), 'a')
      assert.deepEqual(asked, ['theirs 192.0.2.1 a'])
    }
  })

  test('a token that cannot be checked here is not sent to a cluster', async () => {
    await assert.rejects(authenticate([failing(unavailable('down', 1))], 'theirs'), { code: 503 })
    assert.deepEqual(asked, [])
  })

  test('a token that is unknown everywhere gets the refusal of this server', async () => {
    const refusal = unauthorized()
    await assert.rejects(authenticate([failing(refusal)], 'nobody'), refusal)
    assert.equal(asked.length, 1)
  })

  test('a token is checked again for the same cluster', async () => {
    const again = bearerTokens([own], origins).reauthenticator?.(requestWith('theirs-1'), {
      cluster: 'b',
    })
    assert.equal((await again?.())?.origin, 'b')
  })
})
