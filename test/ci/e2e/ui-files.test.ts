/** The files of the web page: what is served, to whom, and when. */
import assert from 'node:assert/strict'
import { copyFile, cp, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { builtAssets, builtScript, INDEX } from '../../support/built-page.ts'
import { startEtcd } from '../../support/etcd.ts'
import { Folder } from '../../support/gate.ts'
import { openClient, PROTOCOLS } from '../../support/http-client.ts'
import { Tidings } from '../../support/tidings.ts'

const root = join(import.meta.dirname, '../../..')
const NO_ETCD = '--etcd-servers=http://127.0.0.1:1'
/** A webhook that cannot be asked. */
const WEBHOOK = `apiVersion: v1
kind: Config
clusters: [{name: w, cluster: {server: 'https://127.0.0.1:1/'}}]
users: [{name: w, user: {}}]
contexts: [{name: w, context: {cluster: w, user: w}}]
current-context: w
`

let folder: Folder
before(async () => {
  folder = await Folder.create()
})
after(() => folder[Symbol.asyncDispose]())

describe('the files of the page', () => {
  let server: Tidings
  before(async () => {
    server = await Tidings.start([NO_ETCD])
  })
  after(() => server[Symbol.asyncDispose]())

  for (const protocol of PROTOCOLS) {
    test(`each is served in each coding, while etcd is down (${protocol})`, async () => {
      using client = await openClient(protocol, server.port)
      for (const file of [INDEX, ...builtAssets()]) {
        for (const [accepted, coding, suffix] of [
          ['identity', undefined, ''],
          ['gzip', 'gzip', '.gz'],
          ['gzip, deflate, br, zstd', 'br', '.br'],
        ] as const) {
          const headers = { 'accept-encoding': accepted }
          const answer = await client.request({ path: file.path, headers })
          assert.equal(answer.status, 200, file.path)
          assert.equal(answer.headers['content-encoding'], coding)
          assert.deepEqual(answer.body, file.bytes(suffix), `${file.path} ${accepted}`)
          assert.equal(answer.headers['vary'], 'Accept-Encoding')
          const isIndex = file === INDEX
          assert.match(answer.headers['cache-control'] ?? '', isIndex ? /^no-cache$/ : /immutable/)
        }
      }
    })

    test(`HEAD, a known ETag and other methods (${protocol})`, async () => {
      using client = await openClient(protocol, server.port)
      for (const { path, bytes } of [INDEX, builtScript()]) {
        const { headers } = await client.request({ path })
        const etag = headers['etag'] ?? ''
        assert.match(etag, /^".+"$/)
        const known = await client.request({ path, headers: { 'if-none-match': etag } })
        assert.deepEqual([known.status, known.body.length], [304, 0])
        assert.equal(known.headers['content-length'], undefined)
        const head = await client.request({ method: 'HEAD', path })
        assert.deepEqual([head.status, head.body.length], [200, 0])
        assert.equal(head.headers['content-length'], String(bytes('').length))
        for (const method of ['POST', 'DELETE', 'OPTIONS']) {
          const refused = await client.request({ method, path })
          assert.deepEqual([refused.status, refused.headers['allow']], [405, 'GET, HEAD'])
        }
      }
    })

    test(`every response protects the page, and none has CORS headers (${protocol})`, async () => {
      using client = await openClient(protocol, server.port)
      for (const path of ['/ui', '/ui/', builtScript().path, '/ui/unknown', '/ui/assets/x.js']) {
        const { headers } = await client.request({ path })
        assert.match(headers['content-security-policy'] ?? '', /^default-src 'none'; script-src/)
        assert.equal(headers['x-content-type-options'], 'nosniff')
        assert.equal(headers['referrer-policy'], 'no-referrer')
        assert.equal(headers['cross-origin-opener-policy'], 'same-origin')
        assert.equal(headers['cross-origin-resource-policy'], 'same-origin')
        assert.ok(!Object.keys(headers).some((name) => name.startsWith('access-control')))
      }
    })

    test(`no path leads to another file (${protocol})`, async () => {
      using client = await openClient(protocol, server.port)
      for (const path of [
        '/ui/../package.json',
        '/ui/..%2f..%2fpackage.json',
        '/ui/assets/../../build.json',
        '/ui/assets/%2e%2e/%2e%2e/build.json',
        '/ui/assets/..%5c..%5cbuild.json',
        '/ui/assets/%2e%2e%2findex.html',
        '/ui/assets//etc/passwd',
        '/ui/assets/%00',
        `${builtScript().path}.br`,
        `${builtScript().path}%00.js`,
        '/ui/index.html',
        '/ui/sign-in',
      ]) {
        const answer = await client.request({ path })
        assert.equal(answer.status, 404, path)
        assert.equal(JSON.parse(String(answer.body)).reason, 'NotFound')
      }
    })
  }

  test('the path without a slash leads to the page relative to where it is', async () => {
    const { status, headers } = await server.ask('/ui?view=lanes')
    assert.equal(status, 308)
    const location = String(headers['location'])
    assert.equal(new URL(location, 'https://a/ui').pathname, '/ui/')
    const behindProxy = new URL(location, 'https://a/tools/events/ui')
    assert.equal(behindProxy.href, 'https://a/tools/events/ui/?view=lanes')
  })

  test('it is a page of the server, not of a cluster', async () => {
    assert.equal((await server.ask('/clusters/local/ui/')).status, 404)
    assert.equal((await server.ask('/clusters/local/ui')).status, 404)
  })

  test('it is listed, and counted under one label whatever the path', async () => {
    for (const path of ['/ui/', '/ui/a', '/ui/b', builtScript().path]) await server.ask(path)
    const { body } = await server.ask('/metrics')
    const labels = body.matchAll(/^apiserver_request_total\{.*subresource="(\/ui[^"]*)"/gm)
    assert.deepEqual([...new Set([...labels].map(([, label]) => label))], ['/ui'])
  })
})

describe('who gets the page', () => {
  test('everybody, whatever they send and whoever decides about the API', async () => {
    const webhook = await folder.write('webhook.yaml', WEBHOOK)
    const tokens = await folder.write('tokens.csv', 'ada,ada,1\n')
    for (const flags of [
      ['--anonymous-auth=false', `--token-auth-file=${tokens}`],
      ['--trust-loopback=false', `--token-auth-file=${tokens}`],
      [
        '--authorization-mode=Webhook',
        `--authorization-webhook-config-file=${webhook}`,
        `--authentication-token-webhook-config-file=${webhook}`,
      ],
    ]) {
      await using server = await Tidings.start([NO_ETCD, ...flags])
      for (const protocol of PROTOCOLS) {
        using client = await openClient(protocol, server.port)
        for (const headers of [
          {},
          { authorization: 'Bearer wrong' },
          { authorization: 'Bearer ada' },
          { 'impersonate-user': 'root' },
          { 'x-forwarded-for': '192.0.2.7' },
        ]) {
          for (const { path } of [INDEX, builtScript()]) {
            assert.equal((await client.request({ path, headers })).status, 200)
          }
        }
      }
      assert.notEqual((await server.ask('/apis')).status, 200)
    }
  })

  test('nobody, with --ui=false', async () => {
    await using server = await Tidings.start([NO_ETCD, '--ui=false'])
    await server.until('/version', ({ status }) => status === 200, 10_000)
    for (const path of ['/ui', '/ui/', builtScript().path, '/ui/sign-in']) {
      await server.until(path, ({ status }) => status !== 503, 10_000)
      const { status, headers } = await server.ask(path)
      assert.equal(status, 404)
      assert.equal(headers['content-security-policy'], undefined)
    }
  })

  test('a server without a built page starts, warns once, and says what to do', async () => {
    const place = await mkdtemp(join(tmpdir(), 'tidings-unbuilt-'))
    try {
      const filter = (source: string): boolean => source !== join(root, 'dist/ui')
      await cp(join(root, 'dist'), join(place, 'dist'), { recursive: true, filter })
      await copyFile(join(root, 'package.json'), join(place, 'package.json'))
      await symlink(join(root, 'node_modules'), join(place, 'node_modules'))
      await using server = await Tidings.start([NO_ETCD], {}, join(place, 'dist/main.js'))
      const { status, body } = await server.ask('/ui/')
      assert.equal(status, 404)
      assert.match(body, /npm run build/)
      assert.equal((await server.ask('/livez/ping')).status, 200)
      const warnings = server.log.filter(({ msg }) => msg.includes('web page'))
      assert.equal(warnings.length, 1)
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  })

  test('clients of a server that shuts down, until its delay is over', async () => {
    await using etcd = await startEtcd()
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      '--shutdown-delay-duration=2s',
    ])
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
    server.kill('SIGTERM')
    await server.until('/readyz', ({ status }) => status === 500, 1000)
    for (const protocol of PROTOCOLS) {
      assert.equal((await server.ask('/ui/', { protocol })).status, 200)
    }
    assert.deepEqual(await server.ended, { code: 0, signal: null })
  })
})
