import assert from 'node:assert/strict'
import { once } from 'node:events'
import http2, { constants, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { createSecureContext, type SecureContext } from 'node:tls'
import { Connection } from '../../../src/etcd/connection.ts'
import { framed } from '../../../src/grpc/message-frames.ts'
import { CertificateAuthority } from '../../support/certs.ts'
import { eventually } from '../../support/eventually.ts'

const authority = await CertificateAuthority.create()

async function credentials(signer = authority): Promise<SecureContext> {
  const { cert, key } = await signer.issueClient('tidings')
  return createSecureContext({ ca: authority.cert, cert, key })
}

/** A member that responds to each call, and requires a client certificate of our authority. */
async function startMember() {
  const server = http2.createSecureServer({
    ...(await authority.issueServer(['127.0.0.1'])),
    ca: authority.cert,
    requestCert: true,
    rejectUnauthorized: true,
  })
  const sessions = new Set<ServerHttp2Session>()
  let accepted = 0
  server.on('session', (session) => {
    accepted += 1
    sessions.add(session)
    session.on('error', () => {})
    session.on('close', () => sessions.delete(session))
  })
  server.on('tlsClientError', () => {})
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    // A watch stays open.
    if (headers[':path'] === '/watch') return
    stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(framed(Buffer.from('yes')))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    sessions,
    accepted: () => accepted,
    [Symbol.asyncDispose]: async () => {
      for (const session of sessions) session.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

async function connect(port: number) {
  let newest = 0
  let changes = 0
  const connection = new Connection({
    endpoint: `https://127.0.0.1:${port}`,
    address: { host: '127.0.0.1', port, isEncrypted: true },
    tls: await credentials(),
    onChange: () => changes++,
    nextNumber: () => ++newest,
  })
  return {
    connection,
    changes: () => changes,
    [Symbol.dispose]: () => connection.close(),
  }
}

function call(connection: Connection): Promise<string> {
  const options = { path: '/call', decode: String, maxBytes: 1000, message: Buffer.from('ask') }
  return new Promise((resolve) => {
    connection.current?.session.unary({ ...options, timeoutMs: 5_000 }, (failure, response) =>
      resolve(failure?.message ?? response ?? ''),
    )
  })
}

function watch(connection: Connection) {
  const call = connection.current?.session.duplex({
    path: '/watch',
    decode: String,
    maxBytes: 1000,
  })
  assert.ok(call !== undefined)
  return call.on('error', () => {})
}

const isAt = (connection: Connection, number: number) => () => connection.current?.number === number

describe('a connection to a member', () => {
  test('uses its session until one with renewed credentials is ready, which replaces it', async () => {
    await using member = await startMember()
    using opened = await connect(member.port)
    const { connection } = opened
    await eventually('the first session', isAt(connection, 1))
    const held = watch(connection)
    connection.renew(await credentials(await CertificateAuthority.create('other')))
    await eventually('etcd refuses the certificate', () => connection.error() !== undefined)
    assert.match(connection.error()?.message ?? '', /^cannot connect: /)
    assert.deepEqual([connection.state, connection.current?.number], ['ready', 1])
    assert.equal(await call(connection), 'yes')
    connection.renew(await credentials())
    await eventually('the second session', isAt(connection, 2))
    assert.equal(connection.error(), undefined)
    assert.equal(await call(connection), 'yes')
    assert.equal(held.destroyed, false, 'a stream in flight continues on the old session')
    held.cancel()
    await eventually('the old session is closed', () => member.sessions.size === 1)
  })

  test('retains at most three replaced sessions, and none after close', async () => {
    await using member = await startMember()
    using opened = await connect(member.port)
    const { connection } = opened
    await eventually('the first session', isAt(connection, 1))
    const streams = [watch(connection)]
    for (let round = 2; round <= 6; round++) {
      connection.renew(await credentials())
      await eventually('the next session', isAt(connection, round))
      streams.push(watch(connection))
    }
    await eventually('the oldest sessions are closed', () => streams[1]?.destroyed === true)
    assert.deepEqual(
      streams.map(({ destroyed }) => destroyed),
      [true, true, false, false, false, false],
    )
    connection.close()
    assert.equal(connection.state, 'closed')
    await eventually('all sessions are closed', () => member.sessions.size === 0)
  })

  test('opens another session after a GOAWAY, and lets calls in flight end', async () => {
    await using member = await startMember()
    using opened = await connect(member.port)
    const { connection } = opened
    await eventually('the first session', isAt(connection, 1))
    await call(connection)
    const held = watch(connection)
    await call(connection)
    for (const session of member.sessions) session.goaway(constants.NGHTTP2_NO_ERROR)
    await eventually('the second session', isAt(connection, 2))
    assert.equal(held.destroyed, false)
  })

  test('reconnects at once when a session is lost that has carried a response', async () => {
    await using member = await startMember()
    using opened = await connect(member.port)
    const { connection } = opened
    await eventually('the first session', isAt(connection, 1))
    await call(connection)
    for (const session of member.sessions) session.destroy()
    await eventually('the loss', () => connection.current?.number !== 1)
    assert.equal(connection.state === 'connecting' || connection.state === 'ready', true)
    await eventually('the second session', isAt(connection, 2))
    assert.ok(opened.changes() >= 3, 'each change of state is reported')
  })

  test('pauses before it replaces sessions that carry no response', async () => {
    await using member = await startMember()
    using opened = await connect(member.port)
    const { connection } = opened
    for (let round = 1; round <= 3; round++) {
      await eventually('a session', isAt(connection, round))
      for (const session of member.sessions) session.destroy()
      await eventually('the loss', () => connection.current === undefined)
    }
    // The pauses are at least 80, 160 and 320 ms.
    const before = member.accepted()
    await sleep(150)
    assert.equal(member.accepted(), before)
  })

  test('reports why it cannot connect', async () => {
    const gone = await startMember()
    const { port } = gone
    await gone[Symbol.asyncDispose]()
    using opened = await connect(port)
    const { connection } = opened
    await eventually('the failure', () => connection.state === 'failing')
    assert.match(connection.error()?.message ?? '', /^cannot connect: .*ECONNREFUSED/)
    assert.equal(connection.error()?.mayHaveBeenApplied, false)
  })
})
