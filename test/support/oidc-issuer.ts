import { once } from 'node:events'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT } from 'jose'
import { CertificateAuthority } from './certs.ts'

type SigningKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey']

export interface Signing {
  readonly kid?: string
  /** Seconds from now. */
  readonly endsIn?: number
  readonly audience?: string
  readonly issuer?: string
  readonly key?: SigningKey
}

/** An OpenID Connect issuer: a discovery document and keys over HTTPS, and tokens to try. */
export class OidcIssuer implements AsyncDisposable {
  readonly url: string
  readonly ca: string
  /** Paths that were requested. */
  readonly reads: string[] = []
  readonly #server: https.Server
  readonly #keys = new Map<string, { readonly key: SigningKey; readonly jwk: JWK }>()
  #newest = ''

  static async start(): Promise<OidcIssuer> {
    const authority = await CertificateAuthority.create('issuers')
    const { cert, key } = await authority.issueServer()
    const server = https.createServer({ cert, key })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const issuer = new OidcIssuer(server, authority.cert.toString())
    await issuer.addKey()
    return issuer
  }

  private constructor(server: https.Server, ca: string) {
    this.#server = server
    this.ca = ca
    this.url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', ({ url = '' }, response) => {
      this.reads.push(url)
      const keys = [...this.#keys.values()].map(({ jwk }) => jwk)
      const document =
        url === '/keys' ? { keys } : { issuer: this.url, jwks_uri: `${this.url}/keys` }
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(document))
    })
  }

  /** Adds a key, which is published and used for signing from now on; returns its id. */
  async addKey(): Promise<string> {
    const { privateKey, publicKey } = await generateKeyPair('RS256')
    const kid = `key-${this.#keys.size}-${Date.now()}`
    const jwk = { ...(await exportJWK(publicKey)), kid, alg: 'RS256', use: 'sig' }
    this.#keys.set(kid, { key: privateKey, jwk })
    this.#newest = kid
    return kid
  }

  /** Publishes only the newest key from now on. */
  dropOldKeys(): void {
    for (const kid of [...this.#keys.keys()]) if (kid !== this.#newest) this.#keys.delete(kid)
  }

  async sign(claims: JWTPayload, signing: Signing = {}): Promise<string> {
    const { kid = this.#newest, endsIn = 600, audience = 'tidings', issuer = this.url } = signing
    const key = signing.key ?? this.#keys.get(kid)?.key
    if (key === undefined) throw new Error(`no key ${kid}`)
    return new SignJWT(claims)
      .setProtectedHeader({ alg: 'RS256', kid })
      .setIssuer(issuer)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime(Math.floor(Date.now() / 1000) + endsIn)
      .sign(key)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
