import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { ConnectionOptions } from 'node:tls'
import { ClientAuthority } from '../../support/client-certs.ts'
import { Folder, type SentHeaders, startGate, type TestGate } from '../../support/gate.ts'
import { OidcIssuer } from '../../support/oidc-issuer.ts'
import { WebhookServer } from '../../support/webhook-server.ts'

const bearer = (token: string): SentHeaders => [['authorization', `Bearer ${token}`]]

describe('reasons of rejected requests', () => {
  let folder: Folder
  let clients: ClientAuthority
  let proxies: ClientAuthority
  let issuer: OidcIssuer
  let gate: TestGate

  before(async () => {
    folder = await Folder.create()
    clients = await ClientAuthority.create('clients')
    proxies = await ClientAuthority.create('proxies')
    issuer = await OidcIssuer.start()
    gate = await startGate([
      `--client-ca-file=${await folder.write('clients.crt', clients.cert)}`,
      `--requestheader-client-ca-file=${await folder.write('proxies.crt', proxies.cert)}`,
      '--requestheader-allowed-names=front-proxy',
      `--token-auth-file=${await folder.write('tokens.csv', 'tina-token,tina,9\n')}`,
      `--oidc-issuer-url=${issuer.url}`,
      '--oidc-client-id=tidings',
      `--oidc-ca-file=${await folder.write('issuer.crt', issuer.ca)}`,
    ])
  })
  after(async () => {
    await gate[Symbol.asyncDispose]()
    await issuer[Symbol.asyncDispose]()
    await folder[Symbol.asyncDispose]()
  })

  /** The status of the response, and the reasons that were reported to the operator. */
  async function outcome(
    headers: SentHeaders,
    options?: ConnectionOptions,
  ): Promise<readonly [number, ...string[]]> {
    const before = gate.refusals.length
    const { status } = await gate.ask('h1', headers, options)
    return [status, ...gate.refusals.slice(before)]
  }

  test('missing credentials and those of an unknown kind are no-credentials', async () => {
    assert.deepEqual(await outcome([]), [401, 'no-credentials'])
    assert.deepEqual(await outcome([['authorization', 'Basic eDp5']]), [401, 'no-credentials'])
  })

  test('an unknown token and one for another audience are bad-token', async () => {
    assert.deepEqual(await outcome(bearer('wrong')), [401, 'bad-token'])
    const astray = await issuer.sign({ sub: 'ada' }, { audience: 'else' })
    assert.deepEqual(await outcome(bearer(astray)), [401, 'bad-token'])
  })

  test('an expired token is expired-token', async () => {
    const old = await issuer.sign({ sub: 'ada' }, { endsIn: -60 })
    assert.deepEqual(await outcome(bearer(old)), [401, 'expired-token'])
  })

  test('a certificate of another authority is bad-certificate, and an expired one expired-certificate', async () => {
    const other = await ClientAuthority.create('clients')
    assert.deepEqual(await outcome([], await other.issue('eve')), [401, 'bad-certificate'])
    const old = await clients.issue('alice', { endsInMs: -60_000 })
    assert.deepEqual(await outcome([], old), [401, 'expired-certificate'])
  })

  test('a proxy that is not allowed is bad-certificate, and one that names two users bad-proxy-headers', async () => {
    const other = await proxies.issue('other-proxy')
    assert.deepEqual(await outcome([['X-Remote-User', 'bob']], other), [401, 'bad-certificate'])
    const both: SentHeaders = [
      ['X-Remote-User', 'bob'],
      ['X-Remote-User', 'root'],
    ]
    const proxy = await proxies.issue('front-proxy')
    assert.deepEqual(await outcome(both, proxy), [401, 'bad-proxy-headers'])
  })

  test('a request with another valid credential has no reason', async () => {
    const old = await clients.issue('alice', { endsInMs: -60_000 })
    assert.deepEqual(await outcome(bearer('tina-token'), old), [200])
  })

  test('a webhook that fails is webhook-failed', async () => {
    await using webhook = await WebhookServer.start((_, response) => response.writeHead(500).end())
    const file = await folder.write('webhook.yaml', webhook.kubeconfig)
    await using other = await startGate([`--authentication-token-webhook-config-file=${file}`])
    assert.equal((await other.ask('h1', bearer('any'))).status, 503)
    assert.deepEqual(other.refusals, ['webhook-failed'])
  })
})
