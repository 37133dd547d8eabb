import assert from 'node:assert/strict'
import { once } from 'node:events'
import http, { type IncomingMessage, type ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import type { KubeconfigServer } from '../../../src/clusters/kubeconfig.ts'
import {
  OriginClient,
  OriginClientError,
  type OriginRequest,
  type OriginResponse,
} from '../../../src/clusters/origin-client.ts'
import { CertificateAuthority, type KeyPair } from '../../support/certs.ts'
import { eventually } from '../../support/eventually.ts'

type Handle = (request: IncomingMessage, response: ServerResponse) => void

describe('OriginClient', () => {
  let authority: CertificateAuthority
  let other: CertificateAuthority
  let ada: KeyPair
  let bob: KeyPair
  let server: https.Server
  let handle: Handle
  let connections = 0
  let plain: KubeconfigServer

  before(async () => {
    authority = await CertificateAuthority.create('origin')
    other = await CertificateAuthority.create('other')
    ada = await authority.issueClient('ada')
    bob = await authority.issueClient('bob')
    const { cert, key } = await authority.issueServer()
    const tls = { cert, key, ca: authority.cert, requestCert: true, rejectUnauthorized: false }
    server = https.createServer(tls, (request, response) => handle(request, response))
    server.on('secureConnection', () => {
      connections += 1
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    plain = {
      url: new URL(`https://127.0.0.1:${port}/clusters/a`),
      ca: String(authority.cert),
      serverName: undefined,
      clientCertificate: undefined,
      token: undefined,
      fingerprint: '',
    }
  })
  after(async () => {
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })

  const get = (more: Partial<OriginRequest> = {}): OriginRequest => ({
    method: 'GET',
    path: '/x?y=1',
    signal: new AbortController().signal,
    headersTimeoutMs: 10_000,
    ...more,
  })
  const pem = ({ cert, key }: KeyPair) => ({ cert: String(cert), key: String(key) })
  const textOf = async ({ body }: OriginResponse): Promise<string> => {
    let text = ''
    for await (const chunk of body) text += chunk
    return text
  }
  const open = (from: KubeconfigServer | (() => KubeconfigServer)) => {
    const source = typeof from === 'function' ? from : () => from
    const client = new OriginClient(source, { userAgent: 'tidings/1.2.3' })
    return Object.assign(client, { [Symbol.dispose]: () => client.close() })
  }
  const show: Handle = (request, response) => {
    const { subject } = (request.socket as TLSSocket).getPeerCertificate()
    const { authorization, 'user-agent': agent } = request.headers
    response.end(JSON.stringify([request.method, request.url, agent, authorization, subject?.CN]))
  }

  test('a request has the path below that of the server, the token and the certificate', async () => {
    handle = show
    using client = open({ ...plain, token: 'secret', clientCertificate: pem(ada) })
    const response = await client.request(get())
    assert.equal(response.status, 200)
    assert.equal(
      await textOf(response),
      '["GET","/clusters/a/x?y=1","tidings/1.2.3","Bearer secret","ada"]',
    )
  })

  test('the empty path is the URL of the server itself, with its query', async () => {
    handle = show
    using client = open({ ...plain, url: new URL('/review/?a=b', plain.url) })
    const text = await textOf(await client.request(get({ path: '' })))
    assert.match(text, /^\["GET","\/review\/\?a=b",/)
  })

  test('a body is posted, and any status is a response', async () => {
    handle = async (request, response) => {
      let text = ''
      for await (const chunk of request) text += chunk
      response.writeHead(403).end(`${request.headers['content-type']} ${text}`)
    }
    using client = open(plain)
    const headers = { 'content-type': 'application/json' }
    const response = await client.request(get({ method: 'POST', headers, body: Buffer.from('{}') }))
    assert.equal(response.status, 403)
    assert.equal(await textOf(response), 'application/json {}')
  })

  test('requests one after another share a connection', async () => {
    handle = show
    using client = open(plain)
    const before = connections
    for (let index = 0; index < 5; index++) await textOf(await client.request(get()))
    assert.equal(connections - before, 1)
  })

  test('a renewed token is used by the next request over the same connection', async () => {
    handle = show
    let current = { ...plain, token: 'one' }
    using client = open(() => current)
    const before = connections
    assert.match(await textOf(await client.request(get())), /Bearer one/)
    current = { ...plain, token: 'two' }
    assert.match(await textOf(await client.request(get())), /Bearer two/)
    assert.equal(connections - before, 1)
  })

  test('a renewed certificate is used by the next request, and open streams go on', async () => {
    let current: KubeconfigServer = { ...plain, clientCertificate: pem(ada) }
    using client = open(() => current)
    let end = (): void => {}
    handle = (_request, response) => {
      response.write('a')
      end = () => response.end('b')
    }
    const stream = await client.request(get())
    current = { ...plain, clientCertificate: pem(bob) }
    handle = show
    assert.match(await textOf(await client.request(get())), /"bob"/)
    end()
    assert.equal(await textOf(stream), 'ab')
  })

  test('a server with a certificate of another authority gets no request', async () => {
    handle = () => assert.fail('a request arrived')
    using client = open({ ...plain, ca: String(other.cert), token: 'secret' })
    await assert.rejects(client.request(get()), (error) => {
      assert.ok(error instanceof OriginClientError)
      assert.match(error.message, /^https:\/\/127\.0\.0\.1:\d+: .*\(\w+\)$/)
      return !error.message.includes('secret')
    })
  })

  test('a server without the expected name gets no request', async () => {
    handle = () => assert.fail('a request arrived')
    using client = open({ ...plain, serverName: 'elsewhere.example' })
    await assert.rejects(client.request(get()), /ERR_TLS_CERT_ALTNAME_INVALID/)
  })

  test('plain HTTP to another host is refused before anything is sent', async () => {
    using client = open({ ...plain, url: new URL('http://192.0.2.1/') })
    await assert.rejects(client.request(get()), /must use https/)
  })

  test('plain HTTP to this host works', async () => {
    const local = http.createServer((request, response) => response.end(request.url))
    local.listen(0, '127.0.0.1')
    await once(local, 'listening')
    const { port } = local.address() as AddressInfo
    using client = open({ ...plain, url: new URL(`http://127.0.0.1:${port}/`) })
    assert.equal(await textOf(await client.request(get())), '/x?y=1')
    local.closeAllConnections()
    local.close()
  })

  test('a server that is down rejects with the reason', async () => {
    using client = open({ ...plain, url: new URL('https://127.0.0.1:1/') })
    await assert.rejects(client.request(get()), /https:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/)
  })

  test('a response without headers in time rejects', async () => {
    handle = () => {}
    using client = open(plain)
    await assert.rejects(
      client.request(get({ headersTimeoutMs: 100 })),
      /no response within 100 ms/,
    )
  })

  test('the idle timeout counts only the time in which the reader waits', async () => {
    handle = (_request, response) => void response.write('a'.repeat(100_000))
    using client = open(plain)
    const { body } = await client.request(get({ idleTimeoutMs: 1000 }))
    let bytes = 0
    let pauses = 0
    await assert.rejects(async () => {
      for await (const chunk of body) {
        bytes += chunk.length
        if (pauses++ === 0) await sleep(1500)
      }
    }, /broke off: no bytes for 1000 ms/)
    assert.equal(bytes, 100_000)
  })

  test('a quiet response without idle timeout is kept', async () => {
    handle = (_request, response) => {
      response.write('a')
      setTimeout(() => response.end('b'), 2500)
    }
    using client = open(plain)
    assert.equal(await textOf(await client.request(get({ headersTimeoutMs: 2000 }))), 'ab')
  })

  test('an abort ends the request before and after the headers, with its own reason', async () => {
    const reason = new Error('enough')
    using client = open(plain)
    for (const isBefore of [true, false]) {
      const arrived = Promise.withResolvers<void>()
      let isClosed = false
      handle = (_request, response) => {
        response.once('close', () => {
          isClosed = true
        })
        if (!isBefore) response.write('a')
        arrived.resolve()
      }
      const controller = new AbortController()
      const responding = client.request(get({ signal: controller.signal }))
      const reading = responding.then(textOf)
      reading.catch(() => {})
      await (isBefore ? arrived.promise : responding)
      controller.abort(reason)
      await assert.rejects(reading, reason)
      await eventually('the connection is closed', () => isClosed)
    }
  })

  test('an aborted signal sends nothing', async () => {
    handle = () => assert.fail('a request arrived')
    using client = open(plain)
    await assert.rejects(client.request(get({ signal: AbortSignal.abort(new Error('no')) })), /no/)
  })

  test('disposal closes the connection of a response that was not read', async () => {
    let isClosed = false
    handle = (_request, response) => {
      response.write('a')
      response.once('close', () => {
        isClosed = true
      })
    }
    using client = open(plain)
    const response = await client.request(get())
    response.dispose()
    await eventually('the connection is closed', () => isClosed)
    await assert.rejects(textOf(response), /broke off/)
  })

  test('a reader that stops early closes the connection', async () => {
    let isClosed = false
    handle = (_request, response) => {
      response.write('a')
      response.once('close', () => {
        isClosed = true
      })
    }
    using client = open(plain)
    for await (const _chunk of (await client.request(get())).body) break
    await eventually('the connection is closed', () => isClosed)
  })

  test('a response that is cut off rejects instead of ending', async () => {
    handle = (_request, response) => {
      response.writeHead(200, { 'content-length': 10 })
      response.write('abc', () => response.destroy())
    }
    using client = open(plain)
    await assert.rejects(textOf(await client.request(get())), /broke off/)
  })

  test('a malformed chunk or a reset within a body rejects, and is no exception without a reader', async () => {
    for (const end of ['malformed', 'reset'] as const) {
      handle = (request) => {
        const { socket } = request
        socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n')
        if (end === 'malformed') setTimeout(() => socket.write('zz\r\n'), 50)
        else setTimeout(() => socket.destroy(), 50)
      }
      using client = open(plain)
      await assert.rejects(textOf(await client.request(get())), OriginClientError)
      const unread = await client.request(get())
      await sleep(150)
      unread.dispose()
    }
  })

  test('a request lost with an idle connection is sent again', async () => {
    handle = show
    using client = open(plain)
    await textOf(await client.request(get()))
    let requests = 0
    handle = (request, response) => {
      requests += 1
      if (requests === 1) request.socket.destroy()
      else response.end('again')
    }
    assert.equal(await textOf(await client.request(get())), 'again')
  })

  test('close ends bodies being read and refuses new requests', async () => {
    handle = (_request, response) => void response.write('a')
    using client = open(plain)
    const reading = textOf(await client.request(get()))
    client.close()
    await assert.rejects(reading, /broke off/)
    await assert.rejects(client.request(get()), /closed/)
  })
})
