import assert from 'node:assert/strict'
import { once } from 'node:events'
import net from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startEtcd } from '../support/etcd.ts'
import { NeighbourHost } from '../support/netns.ts'
import { type Answer, Tidings } from '../support/tidings.ts'

const UNAUTHORIZED = {
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Failure',
  message: 'Unauthorized',
  reason: 'Unauthorized',
  code: 401,
}

/** Runs over at the neighbour, where only node itself is sure to be there. */
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

describe('who may ask', () => {
  test('from another host: 401 without credentials, on every path; from this host: 200', async () => {
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

  test('a proxy on this host does not make strangers local', async () => {
    await using server = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    for (const name of ['X-Forwarded-For', 'x-real-ip', 'Forwarded', 'via']) {
      const answer = await server.ask('/livez', { headers: { [name]: 'for=198.51.100.7' } })
      assert.equal(answer.status, 401, name)
    }
  })

  test('a token nobody knows is refused, also from this host', async () => {
    await using server = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    for (const authorization of ['Bearer wrong', 'bearer  wrong']) {
      assert.equal((await server.ask('/livez', { headers: { authorization } })).status, 401)
    }
  })

  test('unknown paths are not found from this host; /version tells the build', async () => {
    await using server = await Tidings.start(['--etcd-servers=http://127.0.0.1:1'])
    const lost = await server.ask('/nope')
    assert.deepEqual([lost.status, lost.body], [404, '404 page not found\n'])
    const version = JSON.parse((await server.ask('/version')).body)
    assert.match(version.gitVersion, /^v1\.36\.\d+\+tidings-\d+\.\d+\.\d+$/)
    assert.match(version.gitCommit, /^[0-9a-f]{40}$/)
  })

  test('--insecure-port: plain HTTP on loopback, the same answers', async () => {
    await using server = await Tidings.start([
      '--etcd-servers=http://127.0.0.1:1',
      '--bind-address=0.0.0.0',
      `--insecure-port=${await freePort()}`,
    ])
    const answer = await server.ask('/livez', { protocol: 'plain' })
    assert.deepEqual([answer.status, answer.body], [200, 'ok'])
    const line = await server.logged('Serving plain HTTP to this host')
    assert.match(String(line['address']), /^127\.0\.0\.1:/)
  })
})

/** A port that was free a moment ago: the flag's 0 means "off", so one has to be named. */
async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as net.AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
