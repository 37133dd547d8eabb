import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { unauthorized as unauthorizedError } from '../api/status.ts'
import type { Request } from '../http/exchange.ts'
import { admitted } from './admitted.fixture.ts'
import { bearerTokens } from './authentication/bearer-token.ts'
import { alwaysAllow } from './authorization/standing-rights.ts'
import type { Authorizer } from './decisions.ts'
import { type Authenticator, type Caller, Gate, type GateOptions } from './gate.ts'
import { makeRequest } from './request.fixture.ts'
import { readTarget } from './target.ts'
import { ANONYMOUS, type User } from './user.ts'

const ada: User = { name: 'ada', uid: '7', groups: ['system:authenticated'] }
const tokens = bearerTokens([{ userOf: (token) => (token === 'secret' ? ada : undefined) }])
const open = { isOpenToHost: true }
const closed = { isOpenToHost: false }

function gateOf(options: Partial<GateOptions> = {}): Gate {
  return new Gate({
    authenticators: [tokens],
    authorizers: [alwaysAllow],
    allowsAnonymous: false,
    ...options,
  })
}

function request(isLoopback: boolean, headers: Record<string, string> = {}): Request {
  return makeRequest({ path: '/livez', headers, peer: { isLoopback } })
}

const admit = (sent: Request, access = open, gate = gateOf()): Promise<Caller> =>
  admitted(gate, sent, readTarget(sent, 'local'), access)
const unauthorized = { reason: 'Unauthorized', code: 401 }
const forbidden = { reason: 'Forbidden', code: 403 }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const PROXY_HEADERS = [
  'forwarded',
  'forwarded-for',
  'via',
  'x-forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-forwarded-server',
  'x-original-forwarded-for',
  'x-original-for',
  'x-original-host',
  'x-remote-user',
  'x-remote-ip',
  'x-real-ip',
  'x-client-ip',
  'client-ip',
  'true-client-ip',
  'fastly-client-ip',
  'fly-client-ip',
  'x-cluster-client-ip',
  'proxy-client-ip',
  'wl-proxy-client-ip',
  'x-azure-clientip',
  'x-azure-socketip',
  'x-appengine-user-ip',
  'x-proxyuser-ip',
  'x-nf-client-connection-ip',
  'x-envoy-external-address',
  'x-amz-cf-id',
  'cf-connecting-ip',
  'cf-connecting-ipv6',
  'cf-pseudo-ipv4',
  'cf-ray',
  'cdn-loop',
  'remote-addr',
]

describe('gate', () => {
  test('a process on the host is the user system:host on paths open to it', async () => {
    const { user } = await admit(request(true))
    assert.deepEqual(user, { name: 'system:host', groups: ['system:unauthenticated'] })
  })

  test('a process on the host needs credentials on other paths', async () => {
    await assert.rejects(admit(request(true), closed), unauthorized)
  })

  test('a process on the host needs credentials everywhere when the host is not trusted', async () => {
    const gate = gateOf({ distrustsHost: true })
    await assert.rejects(admit(request(true), open, gate), unauthorized)
    const { user } = await admit(request(true, bearer('secret')), open, gate)
    assert.equal(user, ada)
    const strict = gateOf({ distrustsHost: true, authorizers: [] })
    const openToUsers = { isOpenToHost: true, isOpenToHostUsers: true }
    await admit(request(true, bearer('secret')), openToUsers, gateOf({ authorizers: [] }))
    await assert.rejects(admit(request(true, bearer('secret')), openToUsers, strict), forbidden)
  })

  test('admits everybody to a public service, whatever credentials they send', async () => {
    const shut = gateOf({ authorizers: [], distrustsHost: true })
    const isPublic = { isOpenToHost: false, isPublic: true }
    for (const isLoopback of [true, false]) {
      for (const headers of [
        {},
        bearer('wrong'),
        bearer('secret'),
        { 'impersonate-user': 'root' },
      ]) {
        const { user } = await admit(request(isLoopback, headers), isPublic, shut)
        assert.equal(user, ANONYMOUS)
      }
    }
  })

  test('a client elsewhere needs credentials', async () => {
    await assert.rejects(admit(request(false)), unauthorized)
  })

  test('a request that came through a proxy is not local', async () => {
    for (const name of PROXY_HEADERS) {
      await assert.rejects(admit(request(true, { [name]: '' })), unauthorized, name)
    }
  })

  test('the headers of usual clients leave a request local', async () => {
    const names = [
      'accept',
      'user-agent',
      'x-request-id',
      'traceparent',
      'x-client-version',
      'host',
    ]
    for (const name of names) {
      assert.equal((await admit(request(true, { [name]: 'x' }))).user.name, 'system:host', name)
    }
  })

  test('a client with a valid token is admitted from anywhere', async () => {
    const shown = { ...bearer('secret'), 'x-forwarded-for': '198.51.100.7' }
    for (const access of [open, closed]) {
      assert.deepEqual((await admit(request(false, shown), access)).user, ada)
    }
  })

  test('the scheme may have any case, several spaces after it, and text after the token', async () => {
    for (const authorization of ['bearer secret', 'BEARER   secret', 'Bearer secret and more']) {
      assert.deepEqual((await admit(request(false, { authorization }))).user, ada)
    }
  })

  test('an unknown token is refused, even from the host', async () => {
    await assert.rejects(admit(request(true, bearer('wrong'))), unauthorized)
  })

  test('two tokens and a token of more than 16 KiB are refused', async () => {
    const twice = request(false, bearer('secret'))
    const rawHeaders = ['Authorization', 'Bearer secret', 'authorization', 'Bearer secret']
    await assert.rejects(admit({ ...twice, rawHeaders }), unauthorized)
    await assert.rejects(admit(request(false, bearer('x'.repeat(16_385)))), unauthorized)
  })

  test('invalid credentials beside valid ones are ignored; alone they never become anonymous', async () => {
    const wrong: Authenticator = { authenticate: () => Promise.reject(unauthorizedError()) }
    const silent: Authenticator = { authenticate: async () => undefined }
    for (const [authenticators, isAuthenticated] of [
      [[wrong, tokens], true],
      [[silent, wrong, tokens], true],
      [[wrong, silent], false],
      [[silent, wrong], false],
    ] as const) {
      const gate = gateOf({ authenticators, allowsAnonymous: true })
      const outcome = admit(request(true, bearer('secret')), open, gate)
      if (isAuthenticated) assert.deepEqual((await outcome).user, ada)
      else await assert.rejects(outcome, unauthorized)
    }
  })

  test('an authenticator that throws another error refuses the request, whatever others say', async () => {
    const broken: Authenticator = { authenticate: () => Promise.reject(new Error('bug')) }
    const gate = gateOf({ authenticators: [broken, tokens], allowsAnonymous: true })
    await assert.rejects(admit(request(true, bearer('secret')), open, gate), /bug/)
  })

  test('a client without credentials is anonymous where that is allowed', async () => {
    const gate = gateOf({ allowsAnonymous: true })
    assert.equal((await admit(request(false), open, gate)).user.name, 'system:anonymous')
  })

  test('the first authorizer with an opinion decides, and without one the request is forbidden', async () => {
    const says = (verdict: 'allow' | 'deny' | 'no-opinion'): Authorizer => ({
      decide: async () => ({ verdict, reason: verdict }),
    })
    const sent = request(false, bearer('secret'))
    const cases: readonly [Authorizer[], boolean][] = [
      [[], false],
      [[says('no-opinion')], false],
      [[says('no-opinion'), says('allow')], true],
      [[says('deny'), says('allow')], false],
      [[says('allow'), says('deny')], true],
    ]
    for (const [authorizers, isAllowed] of cases) {
      const outcome = admit(sent, closed, gateOf({ authorizers }))
      if (isAllowed) assert.deepEqual((await outcome).user, ada)
      else await assert.rejects(outcome, forbidden)
    }
  })
})

describe('rechecks', () => {
  const watching = (headers: Record<string, string> = {}): Request => ({
    ...request(false, headers),
    path: '/api/v1/events',
    query: new URLSearchParams({ watch: '1' }),
  })

  test('a request that is not a watch has no recheck', async () => {
    const { recheck } = await admit(request(false, bearer('secret')), closed)
    assert.equal(recheck, undefined)
  })

  /** A gate whose user and permission can be changed. */
  function changing() {
    const now = { user: ada as User | undefined, isAllowed: true }
    const known = bearerTokens([{ userOf: (token) => (token === 'secret' ? now.user : undefined) }])
    const authorizer: Authorizer = {
      decide: async () => ({ verdict: now.isAllowed ? 'allow' : 'no-opinion' }),
    }
    return { now, gate: gateOf({ authenticators: [known], authorizers: [authorizer] }) }
  }

  test('a recheck fails when the token, its user or its permission has changed', async () => {
    const { now, gate } = changing()
    const { recheck } = await admit(watching(bearer('secret')), closed, gate)
    const check = recheck ?? assert.fail()
    await check()
    now.isAllowed = false
    await assert.rejects(check(), forbidden)
    now.isAllowed = true
    now.user = { ...ada, groups: ['others'] }
    await check()
    for (const user of [undefined, { ...ada, name: 'bob' }, { ...ada, uid: '8' }]) {
      now.user = user
      await assert.rejects(check(), unauthorized)
    }
  })

  test('an anonymous user stays anonymous, and only its permission is rechecked', async () => {
    const { now, gate: strict } = changing()
    const authorizers: Authorizer[] = [{ decide: (...sent) => strict.decide(...sent) }]
    const gate = gateOf({ authenticators: [tokens], authorizers, allowsAnonymous: true })
    const { recheck } = await admit(watching(), closed, gate)
    const check = recheck ?? assert.fail()
    await check()
    now.isAllowed = false
    await assert.rejects(check(), forbidden)
  })

  test('invalid credentials beside valid ones are ignored in a recheck', async () => {
    const certificate: Authenticator = {
      authenticate: async () => ada,
      reauthenticator: () => async () => ada,
    }
    const gate = gateOf({ authenticators: [certificate, tokens] })
    const twice = watching(bearer('secret'))
    const rawHeaders = ['Authorization', 'Bearer secret', 'Authorization', 'Bearer x']
    const { recheck } = await admit({ ...twice, rawHeaders }, closed, gate)
    await (recheck ?? assert.fail())()
  })

  test('does not retain the request for rechecks', async () => {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const { gate } = changing()
    const admitted = async (): Promise<[() => Promise<void>, WeakRef<Request>]> => {
      const sent = watching({ ...bearer('secret'), accept: 'x'.repeat(100_000) })
      const { recheck } = await admit(sent, closed, gate)
      return [recheck ?? assert.fail(), new WeakRef(sent)]
    }
    const [check, sent] = await admitted()
    await new Promise(setImmediate)
    collect()
    assert.equal(sent.deref(), undefined)
    await check()
  })
})
