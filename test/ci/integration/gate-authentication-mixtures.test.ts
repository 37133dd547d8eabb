/**
 * Random combinations of valid and invalid credentials, over connections that are reused: a caller
 * is authenticated only as a user that it has proved to be, chosen by the precedence of the
 * credentials.
 */
import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { SignJWT } from 'jose'
import { makeSelfSigned } from '../../../src/http/tls/self-signed.ts'
import { ClientAuthority, type ClientCertificate } from '../../support/client-certs.ts'
import { Folder, type SentHeaders, startGate, type TestGate, userIn } from '../../support/gate.ts'
import { PROTOCOLS, type Protocol } from '../../support/http-client.ts'

const ISSUER = 'https://cluster.example'
const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const strange = generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** What the credential proves by itself; 'proxy' may name other users. */
type Meaning = { readonly user: string } | 'proxy' | 'wrong' | 'nothing'

const NOTHING = 'nothing'
let certificates: ReadonlyMap<string, { meaning: Meaning; tls: ClientCertificate | object }>
let tokens: ReadonlyMap<string, { meaning: Meaning; value: string | undefined }>
let folder: Folder
const gates = new Map<boolean, TestGate>()

before(async () => {
  folder = await Folder.create()
  const clients = await ClientAuthority.create('clients')
  const proxies = await ClientAuthority.create('proxies')
  const impostor = await ClientAuthority.create('proxies')
  certificates = new Map<string, { meaning: Meaning; tls: ClientCertificate | object }>([
    [NOTHING, { meaning: NOTHING, tls: {} }],
    ['alice', { meaning: { user: 'alice' }, tls: await clients.issue('alice') }],
    ['bob', { meaning: { user: 'bob' }, tls: await clients.issue('bob') }],
    [
      'client by the name of a proxy',
      {
        meaning: { user: 'front-proxy' },
        tls: await clients.issue('front-proxy'),
      },
    ],
    ['expired', { meaning: 'wrong', tls: await clients.issue('alice', { endsInMs: -60_000 }) }],
    ['for servers', { meaning: 'wrong', tls: await clients.issue('alice', { usage: 'server' }) }],
    ['signed by itself', { meaning: 'wrong', tls: await makeSelfSigned(['front-proxy']) }],
    [
      'of another authority',
      {
        meaning: 'wrong',
        tls: await (await ClientAuthority.create('others')).issue('alice'),
      },
    ],
    ['proxy', { meaning: 'proxy', tls: await proxies.issue('front-proxy') }],
    ['proxy of another name', { meaning: 'wrong', tls: await proxies.issue('alice') }],
    [
      'proxy that expired',
      {
        meaning: 'wrong',
        tls: await proxies.issue('front-proxy', { endsInMs: -60_000 }),
      },
    ],
    ['proxy of an impostor', { meaning: 'wrong', tls: await impostor.issue('front-proxy') }],
  ])
  tokens = new Map<string, { meaning: Meaning; value: string | undefined }>([
    [NOTHING, { meaning: NOTHING, value: undefined }],
    ['of the file', { meaning: { user: 'tina' }, value: 'Bearer tina-token' }],
    ['in odd case', { meaning: { user: 'tina' }, value: 'bEaReR  tina-token' }],
    ['wrong', { meaning: 'wrong', value: 'Bearer tina-token2' }],
    ['empty', { meaning: NOTHING, value: 'Bearer' }],
    ['basic', { meaning: NOTHING, value: 'Basic dGluYTp0aW5h' }],
    [
      'signed',
      {
        meaning: { user: 'system:serviceaccount:shop:cart' },
        value: `Bearer ${await sign(keys.privateKey, 600)}`,
      },
    ],
    ['signed, expired', { meaning: 'wrong', value: `Bearer ${await sign(keys.privateKey, -60)}` }],
    [
      'signed, forged',
      { meaning: 'wrong', value: `Bearer ${await sign(strange.privateKey, 600)}` },
    ],
  ])
  const pem = keys.publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const flags = [
    `--client-ca-file=${await folder.write('clients.crt', clients.cert)}`,
    `--requestheader-client-ca-file=${await folder.write('proxies.crt', proxies.cert)}`,
    '--requestheader-allowed-names=front-proxy',
    `--token-auth-file=${await folder.write('tokens.csv', 'tina-token,tina,9\n')}`,
    `--service-account-key-file=${await folder.write('keys.pem', pem)}`,
    `--service-account-issuer=${ISSUER}`,
  ]
  for (const isOpen of [false, true]) {
    gates.set(isOpen, await startGate([...flags, `--anonymous-auth=${isOpen}`]))
  }
})

after(async () => {
  for (const gate of gates.values()) await gate[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

async function sign(key: KeyObject, endsIn: number): Promise<string> {
  return new SignJWT({
    'kubernetes.io': { namespace: 'shop', serviceaccount: { name: 'cart', uid: '1' } },
  })
    .setProtectedHeader({ alg: 'ES256' })
    .setIssuer(ISSUER)
    .setAudience(ISSUER)
    .setIssuedAt()
    .setExpirationTime(Math.floor(Date.now() / 1000) + endsIn)
    .sign(key)
}

interface Asked {
  readonly token: string
  readonly spoofed: SentHeaders
}

const CERTIFICATES = [
  NOTHING,
  'alice',
  'bob',
  'client by the name of a proxy',
  'expired',
  'for servers',
  'signed by itself',
  'of another authority',
  'proxy',
  'proxy of another name',
  'proxy that expired',
  'proxy of an impostor',
]
const TOKENS = [
  NOTHING,
  'of the file',
  'in odd case',
  'wrong',
  'empty',
  'basic',
  'signed',
  'signed, expired',
  'signed, forged',
]
const spoofed = fc.constantFrom<SentHeaders[number]>(
  ['X-Remote-User', 'root'],
  ['x-remote-user', 'alice'],
  ['X-REMOTE-USER', 'system:admin'],
  ['X-Remote-User', ''],
  ['X_Remote_User', 'root'],
  ['X-Remote_User', 'root'],
  ['X-Remote-User-', 'root'],
  ['Remote-User', 'root'],
  ['X-Remote-Group', 'system:masters'],
  ['x-ReMoTe-GrOuP', 'a, system:masters'],
  ['X_Remote_Group', 'system:masters'],
  ['X-Remote-Extra-scopes', 'all'],
  ['X-Forwarded-User', 'root'],
)
const asked: fc.Arbitrary<Asked> = fc.record({
  token: fc.constantFrom(...TOKENS),
  spoofed: fc.array(spoofed, { maxLength: 4 }),
})

/**
 * The user that the gate must return; undefined for a 401. Written for clarity, as the reference.
 */
function expected(shown: string, { token, spoofed: headers }: Asked, isOpen: boolean): unknown {
  const certificate = certificates.get(shown)?.meaning ?? 'wrong'
  const bearer = tokens.get(token)?.meaning ?? 'wrong'
  const named = headers.filter(([name, value]) => /^x-remote-user$/i.test(name) && value !== '')
  const groups = headers
    .filter(([name]) => /^x-remote-group$/i.test(name))
    .map(([, value]) => value)
  if (certificate === 'proxy' && named.length === 1) {
    return { name: named[0]?.[1], groups: [...groups, 'system:authenticated'] }
  }
  if (typeof certificate === 'object') {
    return { name: certificate.user, groups: ['system:authenticated'] }
  }
  if (typeof bearer === 'object') {
    const isAccount = bearer.user.startsWith('system:serviceaccount')
    const own = isAccount ? ['system:serviceaccounts', 'system:serviceaccounts:shop'] : []
    return { name: bearer.user, groups: [...own, 'system:authenticated'] }
  }
  if (certificate !== NOTHING || bearer === 'wrong' || !isOpen) return undefined
  return { name: 'system:anonymous', groups: ['system:unauthenticated'] }
}

function headersOf({ token, spoofed: headers }: Asked): SentHeaders {
  const value = tokens.get(token)?.value
  return value === undefined ? headers : [...headers, ['Authorization', value]]
}

/**
 * Sends all requests on one connection, concurrently over HTTP/2; opens another one when it closes.
 */
async function identities(
  gate: TestGate,
  protocol: Protocol,
  shown: string,
  all: readonly Asked[],
): Promise<unknown[]> {
  const open = () => gate.connect(protocol, certificates.get(shown)?.tls ?? {})
  const known = async (client: Awaited<ReturnType<typeof open>>, one: Asked): Promise<unknown> => {
    const user = userIn(await client.request(headersOf(one)))
    return user === undefined ? undefined : { name: user.name, groups: user.groups }
  }
  const again = async (one: Asked): Promise<unknown> => {
    using client = await open()
    return await known(client, one)
  }
  using client = await open()
  // A 401 closes the connection, so requests behind it are lost and are sent again.
  if (protocol === 'h2') {
    return await Promise.all(all.map((one) => known(client, one).catch(() => again(one))))
  }
  const found: unknown[] = []
  for (const one of all) found.push(await known(client, one).catch(() => again(one)))
  return found
}

describe('mixtures of credentials', () => {
  for (const isOpen of [false, true]) {
    for (const protocol of PROTOCOLS) {
      test(`${protocol}, anonymous ${isOpen}: no caller is authenticated as another user`, async () => {
        const gate = gates.get(isOpen)
        assert.ok(gate)
        await fc.assert(
          fc.asyncProperty(
            fc.constantFrom(...CERTIFICATES),
            fc.array(asked, { minLength: 1, maxLength: 6 }),
            async (shown, all) => {
              const found = await identities(gate, protocol, shown, all)
              assert.deepEqual(
                found,
                all.map((one) => expected(shown, one, isOpen)),
              )
            },
          ),
          { numRuns: 150 },
        )
      })
    }
  }

  test('the lists of credentials here are complete', () => {
    assert.deepEqual([...certificates.keys()].sort(), CERTIFICATES.toSorted())
    assert.deepEqual([...tokens.keys()].sort(), TOKENS.toSorted())
  })

  test('no credential is in the log', () => {
    for (const gate of gates.values()) {
      const log = gate.lines.join('')
      for (const { value } of tokens.values()) {
        const secret = value?.split(' ').at(-1) ?? ''
        if (secret.length > 6) assert.ok(!log.includes(secret))
      }
      assert.doesNotMatch(log, /x-remote/i)
    }
  })
})
