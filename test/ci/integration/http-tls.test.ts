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
import type { Handler, Request } from '../../../src/http/exchange.ts'
import {
  ensureSelfSigned,
  followCertificate,
  loadCertificate,
} from '../../../src/http/tls/certificate-files.ts'
import type { ServingCertificate } from '../../../src/http/tls/secure-context.ts'
import { makeSelfSigned } from '../../../src/http/tls/self-signed.ts'
import type { ClientCertificate } from '../../support/client-certs.ts'
import { ClientAuthority } from '../../support/client-certs.ts'
import { eventually } from '../../support/eventually.ts'
import { openClient, PROTOCOLS } from '../../support/http-client.ts'
import type { TestListener } from '../../support/listener.ts'
import { startListener, text } from '../../support/listener.ts'
import { openPlain, openTls, RawHttp1, requestHead } from '../../support/raw-http1.ts'

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

  test('a client that offers only unknown protocols is refused', async () => {
    await assert.rejects(openTls(server.port, { ALPNProtocols: ['spdy/3'] }))
  })

  for (const version of ['TLSv1', 'TLSv1.1'] as const) {
    test(`${version} is refused`, async () => {
      // The lowest security level, or the client itself would refuse the old version.
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

  test('TLSv1.2 is refused when TLSv1.3 is the minimum', async () => {
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
    test(`${method} over plain HTTP gets a 400 in plain HTTP, and the connection is closed`, async () => {
      const sent = `${method} /livez HTTP/1.1\r\nhost: localhost\r\n\r\n`
      assert.equal(await everythingAnswered(server.port, sent), ANSWER)
    })
  }

  for (const sent of ['SSH-2.0-OpenSSH_9.6\r\n', 'GETTING / HTTP/1.1', '\0\0\0\0\0\0\0\0\0\0\0']) {
    test(`bytes that are neither TLS nor HTTP get no HTTP response: ${JSON.stringify(sent)}`, async () => {
      assert.doesNotMatch(await everythingAnswered(server.port, sent), /HTTP/)
    })
  }

  test('a request after a handshake is served normally', async () => {
    const socket = await openTls(server.port, { ALPNProtocols: ['http/1.1'] })
    const client = new RawHttp1(socket)
    assert.equal((await client.request({})).body.toString(), 'ok')
    client.close()
  })

  test('many plain connections that neither read nor close are closed at once', async () => {
    const crowd = await Promise.all(Array.from({ length: 200 }, () => openPlain(server.port)))
    for (const socket of crowd) {
      socket.pause()
      socket.write('GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n')
    }
    await eventually('no connection is left', () => server.listener.connectionCount === 0)
    for (const socket of crowd) socket.destroy()
  })

  test('plain clients that keep sending or disconnect early do no harm', async () => {
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

  test('each plain request counts as a failed handshake', async () => {
    const before = handshakeErrors.length
    await everythingAnswered(server.port, 'GET / HTTP/1.1\r\n\r\n')
    assert.deepEqual(handshakeErrors.slice(before), ['ERR_SSL_HTTP_REQUEST'])
  })
})

/** All bytes that are received until the connection ends, which it must. */
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

describe('session resumption', () => {
  for (const version of TLS_VERSIONS) {
    for (const protocol of PROTOCOLS) {
      test(`no session is resumed in ${version}, ${protocol}, before and after a new certificate`, async () => {
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
    return text(200, shown?.isVerified === true ? shown.leaf.subject : 'anonymous')
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

      test(`${protocol}, ${version}: a certificate of our authority is presented to the handler`, async () => {
        assert.equal(await ask(alice), 'CN=alice')
      })

      test(`${protocol}, ${version}: the certificate is presented for every request of its connection`, async () => {
        using client = await openClient(protocol, server.port, { ...options, ...alice })
        for (let i = 0; i < 3; i += 1) {
          assert.equal((await client.request({})).body.toString(), 'CN=alice')
        }
      })

      test(`${protocol}, ${version}: a client without a certificate is anonymous`, async () => {
        assert.equal(await ask({}), 'anonymous')
      })

      test(`${protocol}, ${version}: a certificate of another authority is anonymous`, async () => {
        const other = await ClientAuthority.create('others')
        assert.equal(await ask(await other.issue('alice')), 'anonymous')
      })

      test(`${protocol}, ${version}: a certificate of an authority with the same name is never presented`, async () => {
        const impostor = await ClientAuthority.create('clients')
        const certificate = await impostor.issue('alice')
        // TLS 1.2 refuses the forged signature outright; anonymous access is as good.
        const outcome = await ask(certificate).catch(() => 'refused')
        assert.match(outcome, /^(anonymous|refused)$/)
        assert.equal(await ask(alice), 'CN=alice')
      })

      test(`${protocol}, ${version}: a self-signed certificate is anonymous`, async () => {
        assert.equal(await ask(await makeSelfSigned(['alice'])), 'anonymous')
      })

      test(`${protocol}, ${version}: an expired certificate is anonymous`, async () => {
        assert.equal(await ask(await authority.issue('alice', { endsInMs: -60_000 })), 'anonymous')
      })

      test(`${protocol}, ${version}: a server certificate is anonymous`, async () => {
        assert.equal(await ask(await authority.issue('alice', { usage: 'server' })), 'anonymous')
      })

      test(`${protocol}, ${version}: a resumed session carries no certificate`, async () => {
        const sessions = await savedSessions(protocol, server.port, { ...options, ...alice })
        assert.ok(sessions.length > 0)
        for (const session of sessions) assert.equal(await ask({ session }), 'anonymous')
        // Nor after the server has loaded another certificate, with another TLS context.
        server.listener.renewCertificate(await makeSelfSigned(['localhost']))
        for (const session of sessions) assert.equal(await ask({ session }), 'anonymous')
        assert.equal(await ask(alice), 'CN=alice')
      })
    }

    test(`${protocol}: without an authority no certificate is accepted`, async () => {
      await using open = await startListener(whoami)
      using client = await openClient(protocol, open.port, { ...alice })
      assert.equal((await client.request({})).body.toString(), 'anonymous')
    })

    test(`${protocol}: the certificate can be read after the client has disconnected`, async () => {
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
      await eventually('the connection is closed', () => own.listener.connectionCount === 0)
      assert.equal(asked[0]?.peer.clientCertificate()?.leaf.subject, 'CN=alice')
    })
  }
})

describe('a new serving certificate', () => {
  test('a new certificate interrupts no connection and no response, and new handshakes use it', async () => {
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

  test('a missing certificate is created for this host, with a key that only its owner can read', async () => {
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

  test('a valid certificate is kept, and serves clients that trust the file', async () => {
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
    test(`a certificate that is ${what} is replaced`, async () => {
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

  test('a certificate for another address is replaced when the address changes', async () => {
    const place = join(dir, 'moved')
    const paths = await ensureSelfSigned(place, '127.0.0.1')
    const first = await readFile(paths.certFile, 'utf8')
    await ensureSelfSigned(place, '192.0.2.7')
    const leaf = new X509Certificate(await readFile(paths.certFile))
    assert.notEqual(leaf.toString().trim(), first.trim())
    assert.ok(leaf.checkIP('192.0.2.7'))
  })

  test('a wildcard address keeps its certificate from one start to the next', async () => {
    for (const address of ['0.0.0.0', '::']) {
      const place = join(dir, `everywhere-${address.replaceAll(':', '_')}`)
      const paths = await ensureSelfSigned(place, address)
      const first = await readFile(paths.certFile, 'utf8')
      await ensureSelfSigned(place, address)
      assert.equal(await readFile(paths.certFile, 'utf8'), first)
    }
  })

  for (const [what, cert, key, message] of [
    ['an invalid certificate', 'nothing', undefined, /tls\.crt holds no PEM certificate/],
    ['an invalid key', undefined, 'nothing', /tls\.key holds no PEM private key/],
  ] as const) {
    test(`${what} is rejected with the name of its file`, async () => {
      const place = await mkdtemp(join(dir, 'refused-'))
      const good = await makeSelfSigned(['localhost'])
      const paths = await writePair(place, { cert: cert ?? good.cert, key: key ?? good.key })
      await assert.rejects(loadCertificate(paths), message)
    })
  }

  test('a certificate with the key of another is rejected', async () => {
    const place = await mkdtemp(join(dir, 'mismatch-'))
    const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
    const paths = await writePair(place, { cert: one.cert, key: two.key })
    await assert.rejects(loadCertificate(paths), /is not the key of the certificate/)
  })

  describe('following the files', { concurrency: true }, () => {
    test('a new pair is reported once; a half-written one keeps the old in use and is reported', async () => {
      const place = await mkdtemp(join(dir, 'follow-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      const paths = await writePair(place, one)
      using followed = follow(paths, one)
      await sleep(1500)
      await writeFile(paths.certFile, two.cert)
      await eventually('the half-written pair is reported', () => followed.problems.length > 0)
      assert.match(String(followed.problems[0]), /is not the key of the certificate/)
      assert.deepEqual(followed.changes, [])
      await writeFile(paths.keyFile, two.key)
      await eventually('the new pair is loaded', () => followed.changes.length > 0)
      assert.deepEqual(followed.changes, [two])
      await sleep(1500)
      assert.equal(followed.changes.length, 1)
      assert.equal(followed.problems.length, 1)
    })

    test('a pair that stays invalid is reported once, not every second', async () => {
      const place = await mkdtemp(join(dir, 'wrong-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      const paths = await writePair(place, { cert: two.cert, key: one.key })
      using followed = follow(paths, one)
      await sleep(3300)
      assert.equal(followed.problems.length, 1)
      assert.deepEqual(followed.changes, [])
    })

    test('a pair that is written again without a change is not reported', async () => {
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

    test('a pair that changes within the first second is not missed', async () => {
      const place = await mkdtemp(join(dir, 'early-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      const paths = await writePair(place, one)
      using followed = follow(paths, one)
      await sleep(100)
      await writePair(place, two)
      await eventually('the new pair is loaded', () => followed.changes.length > 0)
      assert.deepEqual(followed.changes, [two])
    })

    test('a swap of a symbolic link, as mounted secrets do it, is noticed', async () => {
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

    test('files that are missing for a while are reported, and loaded when they are back', async () => {
      const place = await mkdtemp(join(dir, 'vanish-'))
      const [one, two] = await Promise.all([makeSelfSigned(['a']), makeSelfSigned(['b'])])
      const paths = await writePair(place, one)
      using followed = follow(paths, one)
      await sleep(1200)
      await rm(paths.certFile)
      await eventually('the missing files are reported', () => followed.problems.length > 0)
      await writePair(place, two)
      await eventually('the new pair is loaded', () => followed.changes.length > 0)
      assert.deepEqual(followed.changes, [two])
    })

    test('no change is reported after stop', async () => {
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

/**
 * Every session that a connection offers for resumption, including tickets that come after a
 * request.
 */
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

/** Ways to invalidate a created certificate so that it must be created again. */
function spoilers(): readonly (readonly [string, (paths: PairPaths) => Promise<void>])[] {
  return [
    ['unreadable', (paths) => writeFile(paths.certFile, 'not a certificate')],
    ['without its key', (paths) => rm(paths.keyFile)],
    [
      'not the certificate of its key',
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
