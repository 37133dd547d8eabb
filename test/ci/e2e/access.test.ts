import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startEtcd } from '../../support/etcd.ts'
import { NeighbourHost } from '../../support/netns.ts'
import { reservePort } from '../../support/ports.ts'
import { type Answer, Tidings } from '../../support/tidings.ts'

const UNAUTHORIZED = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'Unauthorized',
  reason: 'Unauthorized',
  code: 401,
}

/** Runs in the other network namespace, where only node itself is certain to exist. */
const ASK = `
  const https = require('node:https'), http2 = require('node:http2'), fs = require('node:fs')
  const [host, port, ca, protocol, path, agent] = process.argv.slice(1)
  const options = { host, port, ca: fs.readFileSync(ca), path, headers: { 'user-agent': agent } }
  const print = (status, headers, body) => console.log(JSON.stringify({ status, headers, body }))
  const collect = (stream, done) => { let text = ''; stream.on('data', (c) => text += c).on('end', () => done(text)) }
  if (protocol === 'h1') https.get(options, (r) => collect(r, (body) => print(r.statusCode, r.headers, body)))
  else {
    const session = http2.connect('https://' + host + ':' + port, { ca: options.ca })
    const stream = session.request({ ':path': path, 'user-agent': agent })
    stream.on('response', (h) => collect(stream, (body) => { print(h[':status'], h, body); session.close() }))
  }
`

describe('access without and with tokens', () => {
  let tokenFile: string

  before(async () => {
    tokenFile = join(await mkdtemp(join(tmpdir(), 'tidings-access-')), 'tokens.csv')
  })
  after(() => rm(dirname(tokenFile), { recursive: true }))

  /** Replaced atomically by a rename. */
  async function writeTokens(text: string): Promise<void> {
    await writeFile(`${tokenFile}.new`, text)
    await rename(`${tokenFile}.new`, tokenFile)
  }

  async function startWithTokens(text: string): Promise<Tidings> {
    await writeTokens(text)
    const server = await Tidings.start([
      '--etcd-servers=http://127.0.0.1:1',
      `--token-auth-file=${tokenFile}`,
    ])
    await server.until('/version', ({ status }) => status === 200, 10_000)
    return server
  }

  test('a request without credentials gets 401 from another host, on every path, and 200 from this host', async () => {
    using neighbour = new NeighbourHost()
    await using etcd = await startEtcd()
    await using server = await Tidings.start([
      `--etcd-servers=${etcd.endpoints[0]}`,
      '--bind-address=0.0.0.0',
    ])
    await server.until('/readyz', ({ status }) => status === 200, 10_000)
    const askFromThere = async (
      path: string,
      protocol: string,
      agent = 'kubectl/v1.36',
    ): Promise<Answer> =>
      JSON.parse(
        await neighbour.run(process.execPath, [
          '-e',
          ASK,
          neighbour.ourAddress,
          String(server.port),
          join(server.folder, 'tidings.crt'),
          protocol,
          path,
          agent,
        ]),
      )

    for (const path of [
      '/readyz',
      '/livez/ping',
      '/healthz?verbose',
      '/version',
      '/metrics/slis',
      '/nope',
    ]) {
      for (const protocol of ['h1', 'h2']) {
        const answer = await askFromThere(path, protocol)
        assert.equal(answer.status, 401, `${protocol} ${path}`)
        assert.equal(answer.body, `${JSON.stringify(UNAUTHORIZED)}\n`)
        assert.equal(answer.headers['content-type'], 'application/json')
        assert.equal(answer.headers['cache-control'], 'no-cache, private')
      }
    }
    const pretty = await askFromThere('/livez', 'h2', 'curl/8.0')
    assert.equal(pretty.body, JSON.stringify(UNAUTHORIZED, undefined, 2))
    assert.equal(pretty.headers['content-length'], '157')
    assert.equal((await server.ask('/readyz')).status, 200)
  })

  test('a request through a proxy on this host is not local', async () => {
    await using server = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    for (const name of ['X-Forwarded-For', 'x-real-ip', 'Forwarded', 'via']) {
      const answer = await server.ask('/livez', { headers: { [name]: 'for=198.51.100.7' } })
      assert.equal(answer.status, 401, name)
    }
  })

  test('an unknown token gets 401, also from this host', async () => {
    await using server = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    for (const authorization of ['Bearer wrong', 'bearer  wrong']) {
      assert.equal((await server.ask('/livez', { headers: { authorization } })).status, 401)
    }
  })

  test('a token of the file grants access; without one discovery is denied, from this host too', async () => {
    await using server = await startWithTokens('good,ada,7,"ops,system:masters"\n,nobody,0\n')
    const remark = await server.logged('Problem in a line of the token file')
    assert.equal(remark['line'], 2)
    for (const protocol of ['h1', 'h2'] as const) {
      for (const path of ['/', '/api', '/apis', '/apis/events.k8s.io/', '/apis/events.k8s.io/v1']) {
        const ask = (headers: Record<string, string>): Promise<Answer> =>
          server.ask(path, { protocol, headers })
        assert.equal((await ask({ authorization: 'bearer good and more' })).status, 200, path)
        for (const headers of [{}, { authorization: 'Basic YTpi' }, { authorization: 'Bearer' }]) {
          const answer = await ask(headers)
          assert.equal(answer.status, 401, path)
          assert.deepEqual(JSON.parse(answer.body), UNAUTHORIZED)
        }
      }
      for (const path of ['/livez', '/version', '/metrics', '/nope', '/apis/events.k8s.io/v2']) {
        const headers = { authorization: 'Bearer wrong' }
        assert.equal((await server.ask(path, { protocol, headers })).status, 401, path)
      }
    }
    const headers = { authorization: 'Bearer good', 'x-forwarded-for': '198.51.100.7' }
    assert.equal((await server.ask('/livez', { headers })).status, 200)
    assert.equal((await server.ask('/nope', { headers })).status, 404)
  })

  test('a new token file is loaded within seconds, and a broken one keeps the old one in use', async () => {
    await using server = await startWithTokens('first-token,ada,1\n')
    const statusWith = async (token: string): Promise<number> =>
      (await server.ask('/apis', { headers: { authorization: `Bearer ${token}` } })).status

    await writeTokens('second-token,bob,2\nthird-token')
    const problem = await server.logged('Token file not reloaded')
    assert.match(String(problem['err']), /tokens\.csv, line 2: 1 columns/)
    assert.deepEqual(
      [await statusWith('first-token'), await statusWith('second-token')],
      [200, 401],
    )

    await writeTokens('second-token,bob,2\n')
    assert.equal((await server.logged('Token file reloaded'))['count'], 1)
    assert.deepEqual(
      [await statusWith('first-token'), await statusWith('second-token')],
      [401, 200],
    )
    assert.doesNotMatch(JSON.stringify(server.log), /(first|second|third)-token/)
  })

  test('an invalid token file fails the start with its name and line', async () => {
    await assert.rejects(
      startWithTokens('fine-token,ada,1\nbroken-token,"ada,1\n'),
      (error) =>
        /--token-auth-file.*tokens\.csv, line 2: quoted field is never closed/.test(
          String(error),
        ) && !String(error).includes('-token,'),
    )
  })

  test('unknown paths get 404 from this host, and /version describes the build', async () => {
    await using server = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    const lost = await server.ask('/nope')
    assert.deepEqual([lost.status, lost.body], [404, '404 page not found\n'])
    const version = JSON.parse((await server.ask('/version')).body)
    assert.match(version.gitVersion, /^v1\.37\.\d+\+tidings-\d+\.\d+\.\d+$/)
    assert.match(version.gitCommit, /^[0-9a-f]{40}$/)
  })

  test('--insecure-port serves the same responses over plain HTTP on loopback', async () => {
    await using server = await Tidings.start([
      '--etcd-servers=http://127.0.0.1:1',
      '--bind-address=0.0.0.0',
      `--insecure-port=${await reservePort()}`,
    ])
    const answer = await server.ask('/livez', { protocol: 'plain' })
    assert.deepEqual([answer.status, answer.body], [200, 'ok'])
    const line = await server.logged('Serving plain HTTP to this host')
    assert.match(String(line['address']), /^127\.0\.0\.1:/)
  })

  test('a client that resets after CONNECT does not end the process', async () => {
    await using server = await Tidings.start([
      '--etcd-servers=http://127.0.0.1:1',
      `--insecure-port=${await reservePort()}`,
    ])
    const port = await server.plainPort()
    for (let n = 0; n < 10; n++) {
      const socket = net.connect({ host: '127.0.0.1', port }).on('error', () => {})
      socket.write('CONNECT db.example:443 HTTP/1.1\r\nHost: db.example\r\n\r\n')
      await once(socket, 'data')
      socket.resetAndDestroy()
    }
    assert.equal((await server.ask('/livez', { protocol: 'plain' })).status, 200)
  })
})
