import assert from 'node:assert/strict'
import { generateKeyPairSync, hash, type KeyObject } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type JWTPayload, SignJWT } from 'jose'
import { monotonicClock as clock } from '../../lib/clock.ts'
import { type Log, silentLog } from '../../lib/log/log.ts'
import { ServiceAccountTokens } from './service-account-token.ts'

const ISSUER = 'https://cluster.example'
const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 })
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const unknown = generateKeyPairSync('rsa', { modulusLength: 2048 })
const pem = (key: KeyObject): string => key.export({ type: 'spki', format: 'pem' }).toString()

const CLAIMS: JWTPayload = {
  sub: 'system:serviceaccount:shop:cart',
  jti: 'abc',
  'kubernetes.io': {
    namespace: 'shop',
    serviceaccount: { name: 'cart', uid: 'u-1' },
    pod: { name: 'cart-0', uid: 'u-2' },
    node: { name: 'n1', uid: 'u-3' },
  },
}

interface Signing {
  readonly key?: KeyObject
  readonly alg?: string
  readonly kid?: string
  readonly issuer?: string
  readonly audience?: string | string[]
  /** Seconds from now. */
  readonly endsIn?: number | undefined
  readonly startsIn?: number
}

async function sign(claims: JWTPayload = CLAIMS, signing: Signing = {}): Promise<string> {
  const { key = rsa.privateKey, alg = 'RS256', kid, issuer = ISSUER, audience = ISSUER } = signing
  const now = Math.floor(Date.now() / 1000)
  const jwt = new SignJWT(claims)
    .setProtectedHeader({ alg, ...(kid === undefined ? {} : { kid }) })
    .setIssuer(issuer)
    .setAudience(audience)
    .setIssuedAt()
    .setNotBefore(now + (signing.startsIn ?? -1))
  if (!('endsIn' in signing) || signing.endsIn !== undefined) {
    jwt.setExpirationTime(now + (signing.endsIn ?? 600))
  }
  return jwt.sign(key)
}

describe('service account tokens', () => {
  let folder: string
  let path: string
  let tokens: ServiceAccountTokens
  const open = (keyFiles: readonly string[], log: Log = silentLog): Promise<ServiceAccountTokens> =>
    ServiceAccountTokens.open({ keyFiles, issuers: [ISSUER], audiences: [ISSUER], clock, log })

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tidings-keys-'))
    path = join(folder, 'keys.pem')
    await writeFile(path, pem(ec.publicKey) + pem(rsa.publicKey))
    tokens = await open([path])
  })
  after(async () => {
    tokens.stop()
    await rm(folder, { recursive: true })
  })
  const refused = { reason: 'Unauthorized' }

  test('the user is the account, with the objects that the token is bound to', async () => {
    assert.deepEqual(await tokens.userOf(await sign()), {
      name: 'system:serviceaccount:shop:cart',
      uid: 'u-1',
      groups: ['system:serviceaccounts', 'system:serviceaccounts:shop'],
      extra: {
        'authentication.kubernetes.io/credential-id': ['JTI=abc'],
        'authentication.kubernetes.io/node-name': ['n1'],
        'authentication.kubernetes.io/node-uid': ['u-3'],
        'authentication.kubernetes.io/pod-name': ['cart-0'],
        'authentication.kubernetes.io/pod-uid': ['u-2'],
      },
    })
  })

  test('a token may be signed by any of the keys, named or not', async () => {
    const der = ec.publicKey.export({ format: 'der', type: 'spki' })
    const kid = Buffer.from(hash('sha256', der, 'buffer')).toString('base64url')
    for (const signing of [
      { kid: 'unknown' },
      { key: ec.privateKey, alg: 'ES256' },
      { key: ec.privateKey, alg: 'ES256', kid },
      { alg: 'RS512' },
      { audience: ['other', ISSUER] },
    ]) {
      assert.ok(await tokens.userOf(await sign(CLAIMS, signing)))
    }
  })

  test('tokens of other issuers and tokens that are not JWTs are left to other authenticators', async () => {
    for (const token of [await sign(CLAIMS, { issuer: 'https://else' }), 'opaque', 'a.b.c', '..']) {
      assert.equal(await tokens.userOf(token), undefined)
    }
  })

  for (const [what, claims, signing] of [
    ['by an unknown key', CLAIMS, { key: unknown.privateKey }],
    ['with another algorithm', CLAIMS, { alg: 'PS256' }],
    ['for another audience', CLAIMS, { audience: 'else' }],
    ['and expired', CLAIMS, { endsIn: -60 }],
    ['and not yet valid', CLAIMS, { startsIn: 60 }],
    ['without an expiry', CLAIMS, { endsIn: undefined }],
    ['without an account', {}, {}],
    ['with another account in sub', { ...CLAIMS, sub: 'system:serviceaccount:a:b' }, {}],
    [
      'with a colon in the namespace',
      {
        'kubernetes.io': { namespace: 'shop:x', serviceaccount: { name: 'cart', uid: '' } },
      },
      {},
    ],
  ] as const) {
    test(`a token signed ${what} is refused`, async () => {
      await assert.rejects(tokens.userOf(await sign(claims, signing)), refused)
    })
  }

  test('a token without a signature, or with the public key as an HMAC secret, is refused', async () => {
    const [, body] = (await sign()).split('.')
    const header = (alg: string): string =>
      Buffer.from(JSON.stringify({ alg })).toString('base64url')
    const secret = new TextEncoder().encode(pem(rsa.publicKey))
    const forged = await new SignJWT({ ...CLAIMS, iss: ISSUER, aud: ISSUER })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuedAt()
      .setExpirationTime('1h')
      .sign(secret)
    for (const token of [
      `${header('none')}.${body}.`,
      `${header('None')}.${body}.AA`,
      `AAAA.${body}.AA`,
      `${Buffer.from('[]').toString('base64url')}.${body}.AA`,
      forged,
    ]) {
      await assert.rejects(tokens.userOf(token), refused)
    }
  })

  test('a token with one changed letter is refused or left to other authenticators', async () => {
    const token = await sign()
    for (let at = 0; at < token.length; at += 7) {
      const letter = token[at] === 'A' ? 'B' : 'A'
      const changed = token.slice(0, at) + letter + token.slice(at + 1)
      // The last letter of the signature has unused bits; it is not among these.
      const outcome = await tokens
        .userOf(changed)
        .catch((error: { reason: string }) => error.reason)
      assert.ok([undefined, 'Unauthorized'].includes(outcome as undefined), `changed at ${at}`)
    }
  })

  test('a changed file is used, and tokens signed by the old key are refused', async (context) => {
    context.mock.timers.enable({ apis: ['setInterval'] })
    const own = join(folder, 'changing.pem')
    await writeFile(own, pem(rsa.publicKey))
    let onLine: (msg: string) => void = () => {}
    const record = (msg: string): void => onLine(msg)
    const log = { ...silentLog, info: record, warn: record }
    const changing = await open([own], log)
    const token = await sign()
    assert.ok(await changing.userOf(token))
    const lineAfter = async (text: string): Promise<string> => {
      await writeFile(own, text)
      await new Promise(setImmediate)
      const line = new Promise<string>((resolve) => {
        onLine = resolve
      })
      context.mock.timers.tick(1000)
      return line
    }
    assert.equal(await lineAfter('nothing'), 'Service account keys not reloaded')
    assert.ok(await changing.userOf(token))
    await new Promise(setImmediate)
    assert.equal(await lineAfter(pem(ec.publicKey)), 'Service account keys reloaded')
    await assert.rejects(changing.userOf(token), refused)
    changing.stop()
  })

  test('files without keys, or with keys that cannot sign tokens, are refused', async () => {
    const odd = join(folder, 'odd.pem')
    const ed = generateKeyPairSync('ed25519')
    for (const [text, why] of [
      ['', /contains no PEM key/],
      ['-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n', /cannot be parsed/],
      [pem(ed.publicKey), /cannot sign tokens/],
    ] as const) {
      await writeFile(odd, text)
      await assert.rejects(open([path, odd]), why)
    }
    await assert.rejects(open([folder]), /is not a file/)
  })
})
