import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { AuthorityPool } from '../../src/gate/authentication/authorities.ts'
import type { PresentedCertificate } from '../../src/http/exchange.ts'
import { ClientAuthority, type ClientCertificate } from '../support/client-certs.ts'
import { eventually } from '../support/eventually.ts'
import { Folder, type SentHeaders, startGate, type TestGate, userIn } from '../support/gate.ts'
import { PROTOCOLS } from '../support/http-client.ts'

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
    test('name, organizations and uid of the subject make the user', async () => {
      assert.deepEqual(userIn(await gate.ask(protocol, [], alice)), {
        name: 'alice',
        uid: '42',
        groups: ['dev', 'ops, and more', 'system:authenticated'],
        extra: { 'authentication.kubernetes.io/credential-id': [credentialId(alice.cert)] },
      })
    })

    test('letters of all kinds come through', async () => {
      const cert = await clients.issue('', { subject: [{ CN: ['Zoë=x,O=y\nO=system:masters'] }] })
      const user = userIn(await gate.ask(protocol, [], cert))
      assert.equal(user?.name, 'Zoë=x,O=y\nO=system:masters')
      assert.deepEqual(user?.groups, ['system:authenticated'])
    })

    test('without a common name it is nobody', async () => {
      const cert = await clients.issue('', { subject: [{ O: ['dev'] }] })
      assert.equal((await gate.ask(protocol, [], cert)).status, 401)
    })

    test('two uids are none', async () => {
      const cert = await clients.issue('', {
        subject: [{ CN: ['eve'] }, { [UID]: ['1'] }, { [UID]: ['2'] }],
      })
      assert.equal((await gate.ask(protocol, [], cert)).status, 401)
    })

    for (const [what, make] of [
      ['of a stranger', async () => (await ClientAuthority.create('else')).issue('alice')],
      ['that has expired', () => clients.issue('alice', { endsInMs: -60_000 })],
      ['made for servers', () => clients.issue('alice', { usage: 'server' })],
      ['of an authority that may have none below it', () => tooLong()],
      ['of an intermediate that has expired', () => expiredIntermediate()],
      ['signed by a mere client', () => signedByClient()],
    ] as const) {
      test(`one ${what} is refused, and nobody is anonymous with it`, async () => {
        const answer = await gate.ask(protocol, [], await make())
        assert.equal(answer.status, 401)
      })

      test(`beside one ${what} a good token still counts, and a bad one does not`, async () => {
        const cert = await make()
        const good = await gate.ask(protocol, [['authorization', 'Bearer tina-token']], cert)
        assert.equal(userIn(good)?.name, 'tina')
        const bad = await gate.ask(protocol, [['authorization', 'Bearer wrong']], cert)
        assert.equal(bad.status, 401)
      })
    }

    test('the certificate wins over a token', async () => {
      for (const token of ['tina-token', 'wrong']) {
        const answer = await gate.ask(protocol, [['authorization', `Bearer ${token}`]], alice)
        assert.equal(userIn(answer)?.name, 'alice')
      }
    })

    test('intermediates in the file lead to the authority', async () => {
      const middle = await clients.authority('middle')
      const below = await middle.authority('lower', { pathLength: 0 })
      const file = await folder.write('middle.crt', [below, middle, clients].map(certOf).join(''))
      await using own = await startGate([`--client-ca-file=${file}`])
      const lea = await below.issue('lea')
      assert.equal(userIn(await own.ask(protocol, [], lea))?.name, 'lea')
    })

    test('an authority of proxies below does not make clients, nor the other way about', async () => {
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

    test('headers of an allowed proxy make the user, each value by itself', async () => {
      const user = userIn(await gate.ask(protocol, asBob, proxy))
      assert.deepEqual(
        user,
        JSON.parse(
          '{"name":"bob","uid":"7","groups":["dev","a,b","system:authenticated"],"extra":{"acme.com/project":["one","two"],"__proto__":["x"]}}',
        ),
      )
    })

    test('names in UTF-8 come through', async () => {
      const user = userIn(await gate.ask(protocol, [['X-Remote-User', 'Zoë']], proxy))
      assert.equal(user?.name, 'Zoë')
    })

    test('it wins over a token, right or wrong', async () => {
      for (const token of ['tina-token', 'wrong']) {
        const headers: SentHeaders = [...asBob, ['authorization', `Bearer ${token}`]]
        assert.equal(userIn(await gate.ask(protocol, headers, proxy))?.name, 'bob')
      }
    })

    test('a user named twice is nobody', async () => {
      for (const twice of ['X-Remote-User', 'x-remote-user', 'X-Remote-Uid']) {
        const answer = await gate.ask(protocol, [...asBob, [twice, 'root']], proxy)
        assert.equal(answer.status, 401)
      }
    })

    test('without a user it is nobody, whatever else is said', async () => {
      assert.equal((await gate.ask(protocol, [['X-Remote-Group', 'g']], proxy)).status, 401)
    })

    test('headers with underscores are other headers', async () => {
      assert.equal((await gate.ask(protocol, [['X_Remote_User', 'bob']], proxy)).status, 401)
    })

    test('a proxy of another name is refused', async () => {
      assert.equal((await gate.ask(protocol, asBob, await proxies.issue('other'))).status, 401)
    })

    test('a client that sends the headers is itself', async () => {
      assert.equal(userIn(await gate.ask(protocol, asBob, alice))?.name, 'alice')
      const named = await clients.issue('front-proxy')
      assert.equal(userIn(await gate.ask(protocol, asBob, named))?.name, 'front-proxy')
    })

    test('without a certificate the headers mean nothing', async () => {
      assert.equal(userIn(await gate.ask(protocol, asBob))?.name, 'system:anonymous')
      const headers: SentHeaders = [...asBob, ['authorization', 'Bearer tina-token']]
      assert.equal(userIn(await gate.ask(protocol, headers))?.name, 'tina')
    })

    test('one connection speaks for many, each request for its own', async () => {
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
  /** As if TLS had found nothing wrong with it: what is left is what the pool itself sees. */
  const shown = ({ cert }: ClientCertificate, isVerified = true): PresentedCertificate => {
    const blocks = cert.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g) ?? []
    const [leaf, ...intermediates] = blocks.map((pem) => new X509Certificate(pem))
    assert.ok(leaf)
    return { leaf, intermediates, isVerified }
  }

  test('vouches for what it signed, and for nothing that TLS did not verify', () => {
    assert.equal(pool(clients).vouchesFor(shown(alice), now), true)
    assert.equal(pool(clients).vouchesFor(shown(alice, false), now), false)
    assert.equal(pool(proxies).vouchesFor(shown(alice), now), false)
  })

  test('finds its way over what came along, in any order', async () => {
    const lower = await (await clients.authority('middle')).authority('lower')
    const { leaf, intermediates, isVerified } = shown(await lower.issue('lea'))
    assert.equal(intermediates.length, 2)
    for (const order of [intermediates, intermediates.toReversed()]) {
      const presented = { leaf, intermediates: order, isVerified }
      assert.equal(pool(clients).vouchesFor(presented, now), true)
      assert.equal(pool(proxies).vouchesFor(presented, now), false)
    }
    const gap = { leaf, intermediates: intermediates.slice(1), isVerified }
    assert.equal(pool(clients).vouchesFor(gap, now), false)
  })

  test('sees by itself what is wrong with a certificate', async () => {
    for (const wrong of [
      await clients.issue('alice', { usage: 'server' }),
      await (await ClientAuthority.create('clients')).issue('alice'),
      await tooLong(),
      await expiredIntermediate(),
      await signedByClient(),
    ]) {
      assert.equal(pool(clients).vouchesFor(shown(wrong), now), false)
    }
  })

  test('looks at the time each time', () => {
    const own = pool(clients)
    const presented = shown(alice)
    const hour = 60 * 60_000
    for (const [offset, isGood] of [
      [-3 * hour, false],
      [0, true],
      [2 * hour, false],
      [0, true],
    ] as const) {
      assert.equal(own.vouchesFor(presented, Date.now() + offset), isGood)
    }
  })
})

describe('authorities', () => {
  test('one in both files is refused at start, and so is one below the other', async () => {
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

  test('a file of anything but authorities is refused at start', async () => {
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

  test('files are followed: connections that exist lose what they had', async () => {
    const path = await folder.write('turning.crt', clients.cert)
    await using turning = await startGate([`--client-ca-file=${path}`])
    using old = await turning.connect('h2', alice)
    assert.equal(userIn(await old.request())?.name, 'alice')

    await folder.write('turning.crt', 'broken')
    await eventually('the problem is told', () =>
      turning.lines.some((line) => line.includes('Client authorities not reloaded')),
    )
    assert.equal(userIn(await old.request())?.name, 'alice')

    const next = await ClientAuthority.create('next')
    await folder.write('turning.crt', next.cert)
    await eventually('the file is taken up', () =>
      turning.lines.some((line) => line.includes('Client authorities reloaded')),
    )
    assert.equal((await old.request()).status, 401)
    assert.equal((await turning.ask('h1', [], alice)).status, 401)
    assert.equal(userIn(await turning.ask('h1', [], await next.issue('ned')))?.name, 'ned')
  })

  test('a certificate that expires is worth nothing from then on', async () => {
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

/** The client's own key signs, as if it were an authority's. */
async function signedByClient(): Promise<ClientCertificate> {
  const impostor = await ClientAuthority.create('alice')
  const made = await impostor.issue('root')
  return { ...made, cert: `${made.cert}\n${alice.cert}` }
}
