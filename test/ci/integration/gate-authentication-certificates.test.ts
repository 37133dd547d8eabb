import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { AuthorityPool } from '../../../src/gate/authentication/authorities.ts'
import type { PresentedCertificate } from '../../../src/http/exchange.ts'
import { ClientAuthority, type ClientCertificate } from '../../support/client-certs.ts'
import { eventually } from '../../support/eventually.ts'
import { Folder, type SentHeaders, startGate, type TestGate, userIn } from '../../support/gate.ts'
import { PROTOCOLS } from '../../support/http-client.ts'

const UID = '1.3.6.1.4.1.57683.2'
const credentialId = (cert: string): string =>
  `X509SHA256=${new X509Certificate(cert).fingerprint256.replaceAll(':', '').toLowerCase()}`

const certOf = ({ cert }: ClientAuthority): string => `${cert}\n`

let folder: Folder
let clients: ClientAuthority
let proxies: ClientAuthority
let alice: ClientCertificate
let proxy: ClientCertificate
let gate: TestGate

before(async () => {
  folder = await Folder.create()
  clients = await ClientAuthority.create('clients')
  proxies = await ClientAuthority.create('proxies')
  alice = await clients.issue('', {
    subject: [{ O: ['dev'] }, { CN: ['alice'] }, { O: ['ops, and more'] }, { [UID]: ['42'] }],
  })
  proxy = await proxies.issue('front-proxy')
  gate = await startGate([
    `--client-ca-file=${await folder.write('clients.crt', clients.cert)}`,
    `--requestheader-client-ca-file=${await folder.write('proxies.crt', proxies.cert)}`,
    '--requestheader-allowed-names=front-proxy',
    '--requestheader-uid-headers=X-Remote-Uid',
    `--token-auth-file=${await folder.write('tokens.csv', 'tina-token,tina,9\n')}`,
    '--anonymous-auth',
  ])
})
after(async () => {
  await gate[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

for (const protocol of PROTOCOLS) {
  describe(`client certificates over ${protocol}`, () => {
    test('the subject gives the name, the groups and the uid of the user', async () => {
      assert.deepEqual(userIn(await gate.ask(protocol, [], alice)), {
        name: 'alice',
        uid: '42',
        groups: ['dev', 'ops, and more', 'system:authenticated'],
        extra: { 'authentication.kubernetes.io/credential-id': [credentialId(alice.cert)] },
      })
    })

    test('a name with any characters is kept', async () => {
      const cert = await clients.issue('', { subject: [{ CN: ['Zoë=x,O=y\nO=system:masters'] }] })
      const user = userIn(await gate.ask(protocol, [], cert))
      assert.equal(user?.name, 'Zoë=x,O=y\nO=system:masters')
      assert.deepEqual(user?.groups, ['system:authenticated'])
    })

    test('a certificate without a common name gets 401', async () => {
      const cert = await clients.issue('', { subject: [{ O: ['dev'] }] })
      assert.equal((await gate.ask(protocol, [], cert)).status, 401)
    })

    test('a certificate with two uids gets 401', async () => {
      const cert = await clients.issue('', {
        subject: [{ CN: ['eve'] }, { [UID]: ['1'] }, { [UID]: ['2'] }],
      })
      assert.equal((await gate.ask(protocol, [], cert)).status, 401)
    })

    for (const [what, make] of [
      ['of another authority', async () => (await ClientAuthority.create('else')).issue('alice')],
      ['that has expired', () => clients.issue('alice', { endsInMs: -60_000 })],
      ['made for servers', () => clients.issue('alice', { usage: 'server' })],
      ['of an authority whose path length allows no intermediate', () => tooLong()],
      ['of an intermediate that has expired', () => expiredIntermediate()],
      ['signed by a client certificate', () => signedByClient()],
    ] as const) {
      test(`a certificate ${what} gets 401 instead of anonymous access`, async () => {
        const answer = await gate.ask(protocol, [], await make())
        assert.equal(answer.status, 401)
      })

      test(`a valid token next to a certificate ${what} is accepted, and an invalid one is not`, async () => {
        const cert = await make()
        const good = await gate.ask(protocol, [['authorization', 'Bearer tina-token']], cert)
        assert.equal(userIn(good)?.name, 'tina')
        const bad = await gate.ask(protocol, [['authorization', 'Bearer wrong']], cert)
        assert.equal(bad.status, 401)
      })
    }

    test('the certificate takes precedence over a token', async () => {
      for (const token of ['tina-token', 'wrong']) {
        const answer = await gate.ask(protocol, [['authorization', `Bearer ${token}`]], alice)
        assert.equal(userIn(answer)?.name, 'alice')
      }
    })

    test('intermediates in the CA file are accepted in a chain', async () => {
      const middle = await clients.authority('middle')
      const below = await middle.authority('lower', { pathLength: 0 })
      const file = await folder.write('middle.crt', [below, middle, clients].map(certOf).join(''))
      await using own = await startGate([`--client-ca-file=${file}`])
      const lea = await below.issue('lea')
      assert.equal(userIn(await own.ask(protocol, [], lea))?.name, 'lea')
    })

    test('an intermediate of the proxy authority does not authenticate clients', async () => {
      const middle = await proxies.authority('clients')
      const answer = await gate.ask(protocol, [], await middle.issue('alice'))
      assert.equal(answer.status, 401)
    })
  })

  describe(`front proxies over ${protocol}`, () => {
    const asBob: SentHeaders = [
      ['X-Remote-User', 'bob'],
      ['X-Remote-Group', 'dev'],
      ['x-remote-GROUP', 'a,b'],
      ['X-Remote-Group', ''],
      ['X-Remote-Uid', '7'],
      ['X-Remote-Extra-Acme.com%2fProject', 'one'],
      ['X-Remote-Extra-acme.com%2Fproject', 'two'],
      ['X-Remote-Extra-__proto__', 'x'],
    ]

    test('the headers of an allowed proxy give the user, each value by itself', async () => {
      const user = userIn(await gate.ask(protocol, asBob, proxy))
      assert.deepEqual(
        user,
        JSON.parse(
          '{"name":"bob","uid":"7","groups":["dev","a,b","system:authenticated"],"extra":{"acme.com/project":["one","two"],"__proto__":["x"]}}',
        ),
      )
    })

    test('user names in UTF-8 are kept', async () => {
      const user = userIn(await gate.ask(protocol, [['X-Remote-User', 'Zoë']], proxy))
      assert.equal(user?.name, 'Zoë')
    })

    test('the proxy headers take precedence over a token, valid or not', async () => {
      for (const token of ['tina-token', 'wrong']) {
        const headers: SentHeaders = [...asBob, ['authorization', `Bearer ${token}`]]
        assert.equal(userIn(await gate.ask(protocol, headers, proxy))?.name, 'bob')
      }
    })

    test('a request that names two users gets 401', async () => {
      for (const twice of ['X-Remote-User', 'x-remote-user', 'X-Remote-Uid']) {
        const answer = await gate.ask(protocol, [...asBob, [twice, 'root']], proxy)
        assert.equal(answer.status, 401)
      }
    })

    test('a request of a proxy without a user gets 401', async () => {
      assert.equal((await gate.ask(protocol, [['X-Remote-Group', 'g']], proxy)).status, 401)
    })

    test('headers with underscores are not proxy headers', async () => {
      assert.equal((await gate.ask(protocol, [['X_Remote_User', 'bob']], proxy)).status, 401)
    })

    test('a proxy with another common name gets 401', async () => {
      assert.equal((await gate.ask(protocol, asBob, await proxies.issue('other'))).status, 401)
    })

    test('a client that sends the proxy headers is authenticated as itself', async () => {
      assert.equal(userIn(await gate.ask(protocol, asBob, alice))?.name, 'alice')
      const named = await clients.issue('front-proxy')
      assert.equal(userIn(await gate.ask(protocol, asBob, named))?.name, 'front-proxy')
    })

    test('the proxy headers are ignored without a certificate', async () => {
      assert.equal(userIn(await gate.ask(protocol, asBob))?.name, 'system:anonymous')
      const headers: SentHeaders = [...asBob, ['authorization', 'Bearer tina-token']]
      assert.equal(userIn(await gate.ask(protocol, headers))?.name, 'tina')
    })

    test('requests of many users on one proxy connection are each authenticated by their own headers', async () => {
      using client = await gate.connect(protocol, proxy)
      const names = Array.from({ length: 40 }, (_, index) => `user-${index}`)
      const ask = async (name: string): Promise<string | undefined> =>
        userIn(await client.request([['X-Remote-User', name]]))?.name
      const got = protocol === 'h2' ? await Promise.all(names.map(ask)) : await inTurn(names, ask)
      assert.deepEqual(got, names)
    })
  })
}

describe('a pool of authorities', () => {
  const pool = (of: ClientAuthority): AuthorityPool => new AuthorityPool('file', of.cert)
  const now = Date.now()
  /** Presents a certificate as if TLS had verified it, so that only the checks of the pool are tested. */
  const shown = ({ cert }: ClientCertificate, isVerified = true): PresentedCertificate => {
    const blocks = cert.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []
    const [leaf, ...intermediates] = blocks.map((pem) => new X509Certificate(pem))
    assert.ok(leaf)
    return { leaf, intermediates, isVerified }
  }

  test('vouches for certificates that it signed, and for none that TLS did not verify', () => {
    assert.equal(pool(clients).trusts(shown(alice), now), true)
    assert.equal(pool(clients).trusts(shown(alice, false), now), false)
    assert.equal(pool(proxies).trusts(shown(alice), now), false)
  })

  test('finds the chain through the intermediates that were sent, in any order', async () => {
    const lower = await (await clients.authority('middle')).authority('lower')
    const { leaf, intermediates, isVerified } = shown(await lower.issue('lea'))
    assert.equal(intermediates.length, 2)
    for (const order of [intermediates, intermediates.toReversed()]) {
      const presented = { leaf, intermediates: order, isVerified }
      assert.equal(pool(clients).trusts(presented, now), true)
      assert.equal(pool(proxies).trusts(presented, now), false)
    }
    const gap = { leaf, intermediates: intermediates.slice(1), isVerified }
    assert.equal(pool(clients).trusts(gap, now), false)
  })

  test('checks the certificate by itself', async () => {
    for (const wrong of [
      await clients.issue('alice', { usage: 'server' }),
      await (await ClientAuthority.create('clients')).issue('alice'),
      await tooLong(),
      await expiredIntermediate(),
      await signedByClient(),
    ]) {
      assert.equal(pool(clients).trusts(shown(wrong), now), false)
    }
  })

  test('checks the validity period on every call', () => {
    const own = pool(clients)
    const presented = shown(alice)
    const hour = 60 * 60_000
    for (const [offset, isGood] of [
      [-3 * hour, false],
      [0, true],
      [2 * hour, false],
      [0, true],
    ] as const) {
      assert.equal(own.trusts(presented, Date.now() + offset), isGood)
    }
  })
})

describe('authority files', () => {
  test('an authority in both files is rejected at start, and so is one that the other has signed', async () => {
    const middle = await proxies.authority('middle')
    for (const [client, frontProxy] of [
      [clients.cert, `${proxies.cert}\n${clients.cert}`],
      [`${middle.cert}\n${proxies.cert}`, proxies.cert],
    ]) {
      await assert.rejects(
        startGate([
          `--client-ca-file=${await folder.write('both-a.crt', client ?? '')}`,
          `--requestheader-client-ca-file=${await folder.write('both-b.crt', frontProxy ?? '')}`,
        ]),
        (error: Error) => /share an authority/.test(String(error.cause)),
      )
    }
  })

  test('a file with anything but authorities is rejected at start', async () => {
    const middle = await clients.authority('middle')
    for (const [text, why] of [
      ['', /no PEM certificate/],
      [alice.cert, /not an authority/],
      [middle.cert, /issuer of certificate 1 is missing/],
    ] as const) {
      const path = await folder.write('odd.crt', text)
      await assert.rejects(startGate([`--client-ca-file=${path}`]), (error: Error) =>
        why.test(String(error.cause)),
      )
    }
  })

  test('changed files are reloaded, also for connections that exist', async () => {
    const path = await folder.write('rotated.crt', clients.cert)
    await using rotated = await startGate([`--client-ca-file=${path}`])
    using old = await rotated.connect('h2', alice)
    assert.equal(userIn(await old.request())?.name, 'alice')

    await folder.write('rotated.crt', 'broken')
    await eventually('the problem is logged', () =>
      rotated.lines.some((line) => line.includes('Client authorities not reloaded')),
    )
    assert.equal(userIn(await old.request())?.name, 'alice')

    const next = await ClientAuthority.create('next')
    await folder.write('rotated.crt', next.cert)
    await eventually('the file is reloaded', () =>
      rotated.lines.some((line) => line.includes('Client authorities reloaded')),
    )
    assert.equal((await old.request()).status, 401)
    assert.equal((await rotated.ask('h1', [], alice)).status, 401)
    assert.equal(userIn(await rotated.ask('h1', [], await next.issue('ned')))?.name, 'ned')
  })

  test('a certificate is rejected from the moment it expires', async () => {
    const brief = await clients.issue('brief', { endsInMs: 2_000 })
    const path = await folder.write('brief.crt', clients.cert)
    await using own = await startGate([`--client-ca-file=${path}`])
    using client = await own.connect('h1', brief)
    assert.equal(userIn(await client.request())?.name, 'brief')
    await eventually('it has expired', async () => (await client.request()).status === 401)
  })
})

async function inTurn<T, U>(items: readonly T[], work: (item: T) => Promise<U>): Promise<U[]> {
  const done: U[] = []
  for (const item of items) done.push(await work(item))
  return done
}

async function tooLong(): Promise<ClientCertificate> {
  const flat = await clients.authority('flat', { pathLength: 0 })
  return (await flat.authority('below')).issue('alice')
}

async function expiredIntermediate(): Promise<ClientCertificate> {
  return (await clients.authority('past', { endsInMs: -60_000 })).issue('alice')
}

/** Uses the client's own key to sign, as if it were that of an authority. */
async function signedByClient(): Promise<ClientCertificate> {
  const impostor = await ClientAuthority.create('alice')
  const made = await impostor.issue('root')
  return { ...made, cert: `${made.cert}\n${alice.cert}` }
}
