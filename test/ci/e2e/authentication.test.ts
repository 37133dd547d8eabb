import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ClientAuthority } from '../../support/client-certs.ts'
import { eventually } from '../../support/eventually.ts'
import { Folder } from '../../support/gate.ts'
import { openClient, PROTOCOLS } from '../../support/http-client.ts'
import { runToEnd, Tidings } from '../../support/tidings.ts'

const NO_ETCD = '--etcd-servers=http://127.0.0.1:1'
const ADMINS = 'system:masters'

describe('the program and its certificates', () => {
  let folder: Folder
  before(async () => {
    folder = await Folder.create()
  })
  after(() => folder[Symbol.asyncDispose]())

  test('clients and front proxies are authenticated by certificate, also with a new authority file', async () => {
    const clients = await ClientAuthority.create('clients')
    const proxies = await ClientAuthority.create('proxies')
    const file = await folder.write('clients.crt', clients.cert)
    await using server = await Tidings.start([
      NO_ETCD,
      `--client-ca-file=${file}`,
      `--requestheader-client-ca-file=${await folder.write('proxies.crt', proxies.cert)}`,
    ])
    await server.until('/version', ({ status }) => status === 200, 10_000)
    const alice = await clients.issue('', { subject: [{ CN: ['alice'] }, { O: [ADMINS] }] })
    const proxy = await proxies.issue('front-proxy')
    const outsider = await (await ClientAuthority.create('else')).issue('alice')
    const status = async (
      tls: object,
      headers: Record<string, string> = {},
      protocol: (typeof PROTOCOLS)[number] = 'h2',
    ): Promise<number> => {
      using client = await openClient(protocol, server.port, tls)
      return (await client.request({ path: '/apis', headers })).status
    }
    const asAdmin = { 'x-remote-user': 'bob', 'x-remote-group': ADMINS }
    for (const protocol of PROTOCOLS) {
      assert.equal(await status(alice, {}, protocol), 200)
      assert.equal(await status(proxy, asAdmin, protocol), 200)
      assert.equal(await status(outsider, asAdmin, protocol), 401)
      assert.equal(await status({}, asAdmin, protocol), 401)
    }

    const next = await ClientAuthority.create('next')
    await folder.write('clients.crt', next.cert)
    await server.logged('Client authorities reloaded')
    const ned = await next.issue('', { subject: [{ CN: ['ned'] }, { O: [ADMINS] }] })
    await eventually('new handshakes request it', async () => (await status(ned)) === 200)
    assert.equal(await status(alice), 401)
  })

  test('an authority in both files is an error at start', async () => {
    const both = await ClientAuthority.create('both')
    const file = await folder.write('both.crt', both.cert)
    const { code, stderr } = await runToEnd([
      NO_ETCD,
      '--secure-port=0',
      `--cert-dir=${folder.path}`,
      `--client-ca-file=${file}`,
      `--requestheader-client-ca-file=${file}`,
    ])
    assert.equal(code, 1)
    assert.match(stderr, /--client-ca-file, --requestheader-client-ca-file/)
    assert.match(stderr, /share an authority/)
  })

  test('conflicting flags are reported all at once', async () => {
    const { code, stderr } = await runToEnd([
      NO_ETCD,
      '--oidc-issuer-url=https://issuer.example',
      '--requestheader-allowed-names=front-proxy',
      '--service-account-issuer=https://cluster.example',
    ])
    assert.equal(code, 2)
    for (const flag of [
      '--oidc-client-id',
      '--requestheader-client-ca-file',
      '--service-account-key-file',
    ]) {
      assert.ok(stderr.includes(flag), flag)
    }
  })
})
