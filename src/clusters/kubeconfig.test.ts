import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { loadKubeconfig } from './kubeconfig.ts'

const SECRET = 'hunter2-token'

describe('loadKubeconfig', () => {
  let folder: string
  let path: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-kubeconfig-'))
    path = join(folder, 'config')
  })
  after(() => rm(folder, { recursive: true }))

  const config = (cluster: object, user: object = {}): object => ({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'other', cluster: { server: 'https://other' } },
      { name: 'c', cluster },
    ],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  })
  const server = 'https://127.0.0.1:8443/authorize'

  test('uses cluster and user of the current context, with paths relative to the file', async () => {
    await writeFile(join(folder, 'token'), `${SECRET}\n`)
    await writeFile(path, JSON.stringify(config({ server }, { tokenFile: 'token', token: 'old' })))
    const found = await loadKubeconfig(path)
    assert.equal(String(found.url), server)
    assert.equal(found.token, SECRET)
    assert.equal(found.clientCertificate, undefined)
    assert.equal(await loadKubeconfig(path, {}, found), found)
    await writeFile(join(folder, 'token'), 'another')
    assert.equal((await loadKubeconfig(path, {}, found)).token, 'another')
  })

  test('selects a context by its name', async () => {
    const contexts = [
      { name: 'x', context: { cluster: 'c', user: 'u' } },
      { name: 'y', context: { cluster: 'other' } },
    ]
    await writeFile(path, JSON.stringify({ ...config({ server }, { exec: {} }), contexts }))
    const found = await loadKubeconfig(path, { context: 'y' })
    assert.equal(String(found.url), 'https://other/')
    assert.equal(found.token, undefined)
    await assert.rejects(loadKubeconfig(path, { context: 'z' }), /no context named "z"/)
  })

  test('allows http for servers on this host if the caller does', async () => {
    const load = async (address: string) => {
      await writeFile(path, JSON.stringify(config({ server: address })))
      return (await loadKubeconfig(path, { allowsLoopbackHttp: true })).url.protocol
    }
    for (const host of ['localhost', '127.0.0.1', '127.8.0.1:80', '[::1]:8080']) {
      assert.equal(await load(`http://${host}/x`), 'http:')
    }
    for (const host of ['127.0.0.1.example', 'localhost.example', '10.0.0.1', '[::2]', 'a']) {
      await assert.rejects(load(`http://${host}`), /must use https, except for a server on this/)
    }
    await assert.rejects(load('ftp://localhost'), /must use https/)
  })

  const wrong: readonly (readonly [string | object, RegExp])[] = [
    ['{}', /kind must be Config/],
    ['- a', /kind must be Config/],
    [`a: [${SECRET}`, /line 1: not YAML/],
    [{ ...config({ server }), 'current-context': 'y' }, /contexts has no context named "y"/],
    [{ ...config({ server }), clusters: null }, /clusters has no cluster named "c"/],
    [{ ...config({ server }), users: 'x' }, /users has no user named "u"/],
    [config({}), /cluster\.server is not a URL/],
    [config({ server: 'http://127.0.0.1' }), /must use https/],
    [config({ server: `https://ada:${SECRET}@127.0.0.1` }), /contains a user name/],
    [config({ server, 'insecure-skip-tls-verify': true }), /insecure-skip-tls-verify is refused/],
    [config({ server, 'proxy-url': 'http://x' }), /cluster\.proxy-url is not supported/],
    [
      config({ server }, { exec: {} }),
      /user\.exec is not supported: this server runs no programs: use token, tokenFile/,
    ],
    [config({ server }, { username: 'x', password: SECRET }), /user\.username is not supported/],
    [config({ server }, { token: 7 }), /token must be a string/],
    [config({ server }, { token: `${SECRET}\nx: y` }), /that are not allowed in a header/],
    [config({ server }, { 'client-key-data': 'eA==' }), /must be set together/],
    [config({ server, 'certificate-authority': 'missing.pem' }), /missing\.pem/],
    [
      config({ server }, { 'client-key-data': 'eA==', 'client-certificate-data': 'eA==' }),
      /config: /,
    ],
  ]
  for (const [content, expected] of wrong) {
    const text = typeof content === 'string' ? content : JSON.stringify(content)
    test(`rejects ${text.slice(0, 300)}: ${expected}`, async () => {
      await writeFile(path, text)
      await assert.rejects(loadKubeconfig(path), (error) => {
        assert.match(String(error), expected)
        assert.ok(String(error).includes(path))
        return !String(error).includes(SECRET)
      })
    })
  }
})
