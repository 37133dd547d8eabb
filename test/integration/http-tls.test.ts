import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import {
  chmod,
  mkdir,
  mkdtemp,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ConnectionOptions, SecureVersion, TLSSocket } from 'node:tls'
import {
  ensureSelfSigned,
  followCertificate,
  loadCertificate,
} from '../../src/http/certificate-files.ts'
import type { Handler, Request } from '../../src/http/exchange.ts'
import type { ServingCertificate } from '../../src/http/listener.ts'
import { makeSelfSigned } from '../../src/http/self-signed.ts'
import type { ClientCertificate } from '../support/client-certs.ts'
import { ClientAuthority } from '../support/client-certs.ts'
import { eventually } from '../support/eventually.ts'
import { openClient, PROTOCOLS } from '../support/http-client.ts'
import type { TestListener } from '../support/listener.ts'
import { startListener, text } from '../support/listener.ts'
import { openPlain, openTls, RawHttp1, requestHead } from '../support/raw-http1.ts'

const TLS_VERSIONS: readonly SecureVersion[] = ['TLSv1.2', 'TLSv1.3']

describe('the handshake', () => {
  let server: TestListener
  before(async () => {
    server = await startListener(async () => text(200, 'ok'))
  })
  after(() => server.listener.close())

  for (const [offered, chosen] of [
    [['h2', 'http/1.1'], 'h2'],
    [['http/1.1', 'h2'], 'h2'],
    [['h2'], 'h2'],
    [['http/1.1'], 'http/1.1'],
    [undefined, false],
  ] as const) {
    test(`a client offering ${offered ?? 'no protocol'} speaks ${chosen || 'HTTP/1.1'}`, async () => {
      const options: ConnectionOptions =
        offered === undefined ? {} : { ALPNProtocols: [...offered] }
      const socket = await openTls(server.port, options)
      assert.equal(socket.alpnProtocol, chosen)
      if (chosen === 'h2') {
        socket.destroy()
        return
      }
      const client = new RawHttp1(socket)
      assert.equal((await client.request({})).body.toString(), 'ok')
      client.close()
    })
  }

  test('a client offering only what we do not speak is refused', async () => {
    await assert.rejects(openTls(server.port, { ALPNProtocols: ['spdy/3'] }))
  })

  for (const version of ['TLSv1', 'TLSv1.1'] as const) {
    test(`${version} is refused`, async () => {
      // The lowest security level, or the client would refuse the old version by itself.
      const options = { minVersion: version, maxVersion: version, ciphers: 'ALL:@SECLEVEL=0' }
      await assert.rejects(openTls(server.port, options), /alert|protocol|version/i)
    })
  }

  for (const version of TLS_VERSIONS) {
    test(`${version} is accepted`, async () => {
      const socket = await openTls(server.port, { minVersion: version, maxVersion: version })
      assert.equal(socket.getProtocol(), version)
      socket.destroy()
    })
  }

  test('with TLSv1.3 as the least, TLSv1.2 is refused', async () => {
    await using strict = await startListener(async () => text(200, 'ok'), {
      tls: { minVersion: 'TLSv1.3' },
    })
    await assert.rejects(openTls(strict.port, { maxVersion: 'TLSv1.2' }), /alert|protocol|version/i)
    const socket = await openTls(strict.port)
    assert.equal(socket.getProtocol(), 'TLSv1.3')
    socket.destroy()
    strict.listener.renewCertificate(await makeSelfSigned(['localhost']))
    await assert.rejects(openTls(strict.port, { maxVersion: 'TLSv1.2' }), /alert|protocol|version/i)
  })

  for (const cipher of ['AES128-SHA', 'ECDHE-ECDSA-AES128-SHA', 'ECDHE-ECDSA-AES128-SHA256']) {
    test(`the cipher ${cipher} is refused`, async () => {
      const options = { maxVersion: 'TLSv1.2', ciphers: `${cipher}:@SECLEVEL=0` } as const
      await assert.rejects(openTls(server.port, options), /alert|cipher/i)
    })
  }
})

describe('plain HTTP on the TLS port', () => {
  const ANSWER = 'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n'
  const handshakeErrors: string[] = []
  let server: TestListener
  before(async () => {
    server = await startListener(async () => text(200, 'ok'), {
      onHandshakeError: (code) => handshakeErrors.push(code),
    })
  })
  after(() => server.listener.close())

  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    test(`${method} is told so, and the connection closed`, async () => {
      const sent = `${method} /livez HTTP/1.1\r\nhost: localhost\r\n\r\n`
      assert.equal(await everythingAnswered(server.port, sent), ANSWER)
    })
  }

  for (const sent of ['SSH-2.0-OpenSSH_9.6\r\n', 'GETTING / HTTP/1.1', '\0\0\0\0\0\0\0\0\0\0\0']) {
    test(`what is neither TLS nor HTTP is not: ${JSON.stringify(sent)}`, async () => {
      assert.doesNotMatch(await everythingAnswered(server.port, sent), /HTTP/)
    })
  }

  test('a request that follows a handshake is not taken for one', async () => {
    const socket = await openTls(server.port, { ALPNProtocols: ['http/1.1'] })
    const client = new RawHttp1(socket)
    assert.equal((await client.request({})).body.toString(), 'ok')
    client.close()
  })

  test('a crowd that reads nothing and never hangs up is gone at once', async () => {
    const crowd = await Promise.all(Array.from({ length: 200 }, () => openPlain(server.port)))
    for (const socket of crowd) {
      socket.pause()
      socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    }
    await eventually('no connection is left', () => server.listener.connectionCount === 0)
    for (const socket of crowd) socket.destroy()
  })

  test('those that go on sending, or are gone before they are told, do no harm', async () => {
    const body = Buffer.alloc(64 * 1024)
    for (let round = 0; round < 50; round++) {
      const [gone, talker] = await Promise.all([openPlain(server.port), openPlain(server.port)])
      gone.write('GET / HTTP/1.1\r\n\r\n', () => gone.resetAndDestroy())
      talker.write('POST / HTTP/1.1\r\ncontent-length: 1000000000\r\n\r\n')
      for (let count = 0; count < 100; count++) talker.write(body)
    }
    await eventually('no connection is left', () => server.listener.connectionCount === 0)
    const sent = 'GET / HTTP/1.1\r\n\r\n'
    assert.equal(await everythingAnswered(server.port, sent), ANSWER)
  })

  test('each counts as a failed handshake', async () => {
    const before = handshakeErrors.length
    await everythingAnswered(server.port, 'GET / HTTP/1.1\r\n\r\n')
    assert.deepEqual(handshakeErrors.slice(before), ['ERR_SSL_HTTP_REQUEST'])
  })
})

/** All that comes back until the connection ends, which it must. */
async function everythingAnswered(port: number, sent: string): Promise<string> {
  const socket = await openPlain(port)
  socket.write(sent)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const late = sleep(3000, 'late', { ref: false })
  assert.notEqual(await Promise.race([closed, late]), 'late', 'the connection stays open')
  return Buffer.concat(chunks).toString('latin1')
}

describe('resumption', () => {
  for (const version of TLS_VERSIONS) {
    for (const protocol of PROTOCOLS) {
      test(`there is none in ${version}, ${protocol}, before and after a new certificate`, async () => {
        await using server = await startListener(async () => text(200, 'ok'))
        for (const isRenewed of [false, true]) {
          if (isRenewed) server.listener.renewCertificate(await makeSelfSigned(['localhost']))
          const options = { minVersion: version, maxVersion: version }
          const sessions = await savedSessions(protocol, server.port, options)
          for (const session of [...sessions, ...sessions]) {
            const again = await openTls(server.port, { ...options, ...alpn(protocol), session })
            assert.equal(again.isSessionReused(), false)
            again.destroy()
          }
        }
      })
    }
  }
})

describe('client certificates', () => {
  let authority: ClientAuthority
  let alice: ClientCertificate
  let server: TestListener
  const whoami: Handler = async (request) => {
    const shown = request.peer.clientCertificate()
    return text(200, shown?.isVerified === true ? shown.leaf.subject : 'nobody')
  }

  before(async () => {
    authority = await ClientAuthority.create('clients')
    alice = await authority.issue('alice')
    server = await startListener(whoami, { tls: { clientCa: authority.cert } })
  })
  after(() => server.listener.close())

  for (const protocol of PROTOCOLS) {
    for (const version of TLS_VERSIONS) {
      const options = { minVersion: version, maxVersion: version }
      const ask = async (extra: ConnectionOptions): Promise<string> => {
        using client = await openClient(protocol, server.port, { ...options, ...extra })
        return (await client.request({})).body.toString()
      }

      test(`${protocol}, ${version}: a certificate of our authority is shown`, async () => {
        assert.equal(await ask(alice), 'CN=alice')
      })

      test(`${protocol}, ${version}: it is shown for every request of its connection`, async () => {
        using client = await openClient(protocol, server.port, { ...options, ...alice })
        for (let i = 0; i < 3; i += 1) {
          assert.equal((await client.request({})).body.toString(), 'CN=alice')
        }
      })

      test(`${protocol}, ${version}: a client without one is nobody`, async () => {
        assert.equal(await ask({}), 'nobody')
      })

      test(`${protocol}, ${version}: one of another authority is nobody`, async () => {
        const other = await ClientAuthority.create('somebody else')
        assert.equal(await ask(await other.issue('alice')), 'nobody')
      })

      test(`${protocol}, ${version}: one of an authority that took our name is never shown`, async () => {
        const impostor = await ClientAuthority.create('clients')
        const certificate = await impostor.issue('alice')
        // TLS 1.2 refuses the forged signature outright; being let in as nobody is as good.
        const outcome = await ask(certificate).catch(() => 'refused')
        assert.match(outcome, /^(nobody|refused)$/)
        assert.equal(await ask(alice), 'CN=alice')
      })

      test(`${protocol}, ${version}: one signed by itself is nobody`, async () => {
        assert.equal(await ask(await makeSelfSigned(['alice'])), 'nobody')
      })

      test(`${protocol}, ${version}: one that has expired is nobody`, async () => {
        assert.equal(await ask(await authority.issue('alice', { endsInMs: -60_000 })), 'nobody')
      })

      test(`${protocol}, ${version}: one that was made for servers is nobody`, async () => {
        assert.equal(await ask(await authority.issue('alice', { usage: 'server' })), 'nobody')
      })

      test(`${protocol}, ${version}: resuming a connection made with one does not make one`, async () => {
        const sessions = await savedSessions(protocol, server.port, { ...options, ...alice })
        assert.ok(sessions.length > 0)
        for (const session of sessions) assert.equal(await ask({ session }), 'nobody')
        // Nor after the server has taken up another certificate, with another TLS context.
        server.listener.renewCertificate(await makeSelfSigned(['localhost']))
        for (const session of sessions) assert.equal(await ask({ session }), 'nobody')
        assert.equal(await ask(alice), 'CN=alice')
      })
    }

    test(`${protocol}: without an authority no certificate is ever taken`, async () => {
      await using open = await startListener(whoami)
      using client = await openClient(protocol, open.port, { ...alice })
      assert.equal((await client.request({})).body.toString(), 'nobody')
    })

    test(`${protocol}: it can be asked for after the client has left`, async () => {
      const asked: Request[] = []
      await using own = await startListener(
        async (request) => {
          asked.push(request)
          return text(200, 'ok')
        },
        { tls: { clientCa: authority.cert } },
      )
      const client = await openClient(protocol, own.port, { ...alice })
      await client.request({})
      client[Symbol.dispose]()
      await eventually('the connection is gone', () => own.listener.connectionCount === 0)
      assert.equal(asked[0]?.peer.clientCertificate()?.leaf.subject, 'CN=alice')
    })
  }
})

describe('a new certificate', () => {
  test('drops no connection and no answer, and is what new handshakes see', async () => {
    const gate = Promise.withResolvers<void>()
    await using server = await startListener(async (request) => {
      if (request.path !== '/stream') return text(200, 'ok')
      return {
        status: 200,
        headers: {},
        body: (async function* () {
          yield 'before '
          await gate.promise
          yield 'after'
        })(),
      }
    })
    const oldPrint = new X509Certificate(server.ca).fingerprint256
    using keptHttp1 = await openClient('h1', server.port)
    using keptHttp2 = await openClient('h2', server.port)
    using streamClient = await openClient('h2', server.port)
    await keptHttp1.request({})
    await keptHttp2.request({})
    const streaming = await streamClient.open({ path: '/stream' })
    assert.equal((await streaming.read())?.toString(), 'before ')

    const renewed = await makeSelfSigned(['localhost', '127.0.0.1'])
    server.listener.renewCertificate(renewed)
    assert.equal((await keptHttp1.request({})).status, 200)
    assert.equal((await keptHttp2.request({})).status, 200)
    gate.resolve()
    assert.equal((await streaming.read())?.toString(), 'after')
    assert.equal(await streaming.read(), undefined)

    const newPrint = new X509Certificate(renewed.cert).fingerprint256
    assert.notEqual(newPrint, oldPrint)
    for (const protocol of PROTOCOLS) {
      const socket = await openTls(server.port, {
        ...alpn(protocol),
        ca: renewed.cert,
        rejectUnauthorized: true,
      })
      assert.equal(socket.getPeerX509Certificate()?.fingerprint256, newPrint)
      assert.equal(socket.alpnProtocol, protocol === 'h2' ? 'h2' : 'http/1.1')
      socket.destroy()
    }
    assert.equal(server.listener.connectionCount >= 3, true)
  })
})

describe('certificate files', () => {
  let dir: string
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tidings-http-tls-'))
  })
  after(() => rm(dir, { recursive: true }))

  test('a missing certificate is made, for this host, with a key only we can read', async () => {
    const paths = await ensureSelfSigned(join(dir, 'made', 'deep'), '127.0.0.1')
    assert.equal((await stat(paths.keyFile)).mode & 0o777, 0o600)
    assert.equal((await stat(paths.certFile)).mode & 0o777, 0o644)
    const leaf = new X509Certificate(await readFile(paths.certFile))
    assert.ok(leaf.checkIP('127.0.0.1'))
    assert.ok(leaf.checkIP('::1'))
    assert.ok(leaf.checkHost('localhost'))
    assert.ok(Date.parse(leaf.validFrom) < Date.now())
    assert.ok(Date.parse(leaf.validTo) > Date.now() + 300 * 24 * 60 * 60 * 1000)
  })

  test('a good one is kept, and serves clients that trust the file', async () => {
    const paths = await ensureSelfSigned(join(dir, 'kept'), '127.0.0.1')
    const first = await loadCertificate(paths)
    await ensureSelfSigned(join(dir, 'kept'), '127.0.0.1')
    assert.deepEqual(await loadCertificate(paths), first)
    await using server = await startListener(async () => text(200, 'ok'), {
      tls: { certificate: first },
    })
    const socket = await openTls(server.port, { ca: first.cert, rejectUnauthorized: true })
    assert.ok(socket.authorized)
    socket.destroy()
  })

  for (const [what, spoil] of spoilers()) {
    test(`one that is ${what} is made anew`, async () => {
      const place = join(dir, what.replaceAll(' ', '-'))
      const paths = await ensureSelfSigned(place, '127.0.0.1')
      await spoil(paths)
      const spoiled = await readFile(paths.certFile, 'utf8')
      await ensureSelfSigned(place, '127.0.0.1')
      const { cert } = await loadCertificate(paths)
      assert.notEqual(cert, spoiled)
      assert.ok(Date.parse(new X509Certificate(cert).validTo) > Date.now())
      assert.equal((await stat(paths.keyFile)).mode & 0o777, 0o600)
    })
  }

  test('one for another address is made anew when the address changes', async () => {
    const place = join(dir, 'moved')
    const paths = await ensureSelfSigned(place, '127.0.0.1')
    const first = await readFile(paths.certFile, 'utf8')
    await ensureSelfSigned(place, '192.0.2.7')
    const leaf = new X509Certificate(await readFile(paths.certFile))
    assert.notEqual(leaf.toString().trim(), first.trim())
    assert.ok(leaf.checkIP('192.0.2.7'))
  })

  test('listening everywhere keeps its certificate from one start to the next', async () => {
    for (const address of ['0.0.0.0', '::']) {
      const place = join(dir, `everywhere-${address.replaceAll(':', '_')}`)
      const paths = await ensureSelfSigned(place, address)
      const first = await readFile(paths.certFile, 'utf8')
      await ensureSelfSigned(place, address)
      assert.equal(await readFile(paths.certFile, 'utf8'), first)
    }
  })

  for (const [what, cert, key, message] of [
    ['a certificate that is none', 'nothing', undefined, /tls\.crt holds no PEM certificate/],
    ['a key that is none', undefined, 'nothing', /tls\.key holds no PEM private key/],
  ] as const) {
    test(`${what} is refused with the name of its file`, async () => {
      const place = await mkdtemp(join(dir, 'refused-'))
      const good = await makeSelfSigned(['localhost'])
      const paths = await writePair(place, { cert: cert ?? good.cert, key: key ?? good.key })
      await assert.rejects(loadCertificate(paths), message)
    })
  }

  test('a pair that is none is refused', async () => {
    const place = await mkdtemp(join(dir, 'mismatch-'))
    const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
    const paths = await writePair(place, { cert: one.cert, key: two.key })
    await assert.rejects(loadCertificate(paths), /is not the key of the certificate/)
  })

  describe('following them', { concurrency: true }, () => {
    test('a new pair is reported once; a half-written one keeps the old and is reported', async () => {
      const place = await mkdtemp(join(dir, 'follow-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      const paths = await writePair(place, one)
      using followed = follow(paths, one)
      await sleep(1500)
      await writeFile(paths.certFile, two.cert)
      await eventually('the half is reported', () => followed.problems.length > 0)
      assert.match(String(followed.problems[0]), /is not the key of the certificate/)
      assert.deepEqual(followed.changes, [])
      await writeFile(paths.keyFile, two.key)
      await eventually('the pair is taken up', () => followed.changes.length > 0)
      assert.deepEqual(followed.changes, [two])
      await sleep(1500)
      assert.equal(followed.changes.length, 1)
      assert.equal(followed.problems.length, 1)
    })

    test('a pair that stays wrong is reported once, not every second', async () => {
      const place = await mkdtemp(join(dir, 'wrong-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      const paths = await writePair(place, { cert: two.cert, key: one.key })
      using followed = follow(paths, one)
      await sleep(3300)
      assert.equal(followed.problems.length, 1)
      assert.deepEqual(followed.changes, [])
    })

    test('a pair written anew without a change is no change', async () => {
      const place = await mkdtemp(join(dir, 'same-'))
      const one = await makeSelfSigned(['a'])
      const paths = await writePair(place, one)
      using followed = follow(paths, one)
      await sleep(100)
      await writePair(place, one)
      await sleep(1500)
      assert.deepEqual(followed.changes, [])
      assert.deepEqual(followed.problems, [])
    })

    test('a pair changed within the first second is not missed', async () => {
      const place = await mkdtemp(join(dir, 'early-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      const paths = await writePair(place, one)
      using followed = follow(paths, one)
      await sleep(100)
      await writePair(place, two)
      await eventually('the pair is taken up', () => followed.changes.length > 0)
      assert.deepEqual(followed.changes, [two])
    })

    test('a swap by symbolic link, as mounted secrets do it, is noticed', async () => {
      const place = await mkdtemp(join(dir, 'mounted-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      await mkdir(join(place, '..one'))
      await mkdir(join(place, '..two'))
      await writePair(join(place, '..one'), one)
      await writePair(join(place, '..two'), two)
      await symlink('..one', join(place, '..data'))
      await symlink('..data/tls.crt', join(place, 'tls.crt'))
      await symlink('..data/tls.key', join(place, 'tls.key'))
      using followed = follow(
        { certFile: join(place, 'tls.crt'), keyFile: join(place, 'tls.key') },
        one,
      )
      await sleep(1200)
      await symlink('..two', join(place, '..data_tmp'))
      await rename(join(place, '..data_tmp'), join(place, '..data'))
      await eventually('the swap is noticed', () => followed.changes.length > 0)
      assert.deepEqual(followed.changes, [two])
      assert.deepEqual(followed.problems, [])
    })

    test('files that vanish for a while are reported, and taken up when they return', async () => {
      const place = await mkdtemp(join(dir, 'vanish-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      const paths = await writePair(place, one)
      using followed = follow(paths, one)
      await sleep(1200)
      await rm(paths.certFile)
      await eventually('the loss is reported', () => followed.problems.length > 0)
      await writePair(place, two)
      await eventually('the new pair is taken up', () => followed.changes.length > 0)
      assert.deepEqual(followed.changes, [two])
    })

    test('after stop nothing is reported', async () => {
      const place = await mkdtemp(join(dir, 'stop-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      const paths = await writePair(place, one)
      const followed = follow(paths, one)
      await sleep(1200)
      followed[Symbol.dispose]()
      await writePair(place, two)
      await sleep(1300)
      assert.deepEqual(followed.changes, [])
      assert.deepEqual(followed.problems, [])
    })
  })
})

function alpn(protocol: 'h1' | 'h2'): ConnectionOptions {
  return { ALPNProtocols: [protocol === 'h2' ? 'h2' : 'http/1.1'] }
}

/** Every session a connection offers for later use, tickets that come after a request included. */
async function savedSessions(
  protocol: 'h1' | 'h2',
  port: number,
  options: ConnectionOptions,
): Promise<readonly Buffer[]> {
  const sessions: Buffer[] = []
  const socket: TLSSocket = await openTls(port, { ...options, ...alpn(protocol) })
  socket.on('session', (session) => sessions.push(session))
  if (protocol === 'h1') socket.write(requestHead({}))
  socket.resume()
  await sleep(100)
  const current = socket.getSession()
  if (current !== undefined) sessions.push(current)
  socket.destroy()
  return sessions
}

interface PairPaths {
  readonly certFile: string
  readonly keyFile: string
}

async function writePair(dir: string, pair: ServingCertificate): Promise<PairPaths> {
  const paths = { certFile: join(dir, 'tls.crt'), keyFile: join(dir, 'tls.key') }
  await writeFile(paths.keyFile, pair.key)
  await writeFile(paths.certFile, pair.cert)
  return paths
}

interface Followed extends Disposable {
  readonly changes: ServingCertificate[]
  readonly problems: unknown[]
}

function follow(paths: PairPaths, inUse: ServingCertificate): Followed {
  const changes: ServingCertificate[] = []
  const problems: unknown[] = []
  const follower = followCertificate(paths, inUse, {
    onChange: (certificate) => changes.push(certificate),
    onProblem: (problem) => problems.push(problem),
  })
  return { changes, problems, [Symbol.dispose]: () => follower.stop() }
}

/** Ways in which a certificate that was made can become one that must be made again. */
function spoilers(): readonly (readonly [string, (paths: PairPaths) => Promise<void>])[] {
  return [
    ['unreadable', (paths) => writeFile(paths.certFile, 'not a certificate')],
    ['without its key', (paths) => rm(paths.keyFile)],
    [
      'not the pair of its key',
      async (paths) => writeFile(paths.keyFile, (await makeSelfSigned(['x'])).key),
    ],
    [
      'expired',
      async (paths) => {
        const authority = await ClientAuthority.create('old')
        const old = await authority.issue('localhost', { endsInMs: -1000 })
        await writeFile(paths.certFile, old.cert)
        await writeFile(paths.keyFile, old.key)
        await chmod(paths.keyFile, 0o644)
        await utimes(paths.certFile, 1, 1)
      },
    ],
  ]
}
