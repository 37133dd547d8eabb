import { webcrypto } from 'node:crypto'
import 'reflect-metadata'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const HOUR_MS = 60 * 60 * 1000

/** A certificate and its key, both PEM, as TLS options take them. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
}

export interface ClientCertificateOptions {
  /** When it ends, in milliseconds from now; negative for one that has expired. */
  readonly endsInMs?: number
  readonly usage?: 'client' | 'server'
}

/** Signs certificates for clients, for the length of a test. */
export class ClientAuthority {
  readonly cert: string
  readonly #certificate: X509Certificate
  readonly #keys: webcrypto.CryptoKeyPair

  static async create(name: string): Promise<ClientAuthority> {
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
    const certificate = await X509CertificateGenerator.createSelfSigned(
      {
        name: `CN=${name}`,
        notBefore: new Date(Date.now() - HOUR_MS),
        notAfter: new Date(Date.now() + HOUR_MS),
        signingAlgorithm: algorithm,
        keys,
        extensions: [new BasicConstraintsExtension(true, undefined, true)],
      },
      webcrypto,
    )
    return new ClientAuthority(certificate, keys)
  }

  private constructor(certificate: X509Certificate, keys: webcrypto.CryptoKeyPair) {
    this.#certificate = certificate
    this.#keys = keys
    this.cert = certificate.toString('pem')
  }

  async issue(name: string, options: ClientCertificateOptions = {}): Promise<ClientCertificate> {
    const { endsInMs = HOUR_MS, usage = 'client' } = options
    const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
    const purpose = usage === 'client' ? ExtendedKeyUsage.clientAuth : ExtendedKeyUsage.serverAuth
    const certificate = await X509CertificateGenerator.create(
      {
        subject: `CN=${name}`,
        issuer: this.#certificate.subject,
        notBefore: new Date(Date.now() - 2 * HOUR_MS),
        notAfter: new Date(Date.now() + endsInMs),
        signingAlgorithm: algorithm,
        signingKey: this.#keys.privateKey,
        publicKey: keys.publicKey,
        extensions: [new ExtendedKeyUsageExtension([purpose])],
      },
      webcrypto,
    )
    const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
    return { cert: certificate.toString('pem'), key: pem(pkcs8) }
  }
}

function pem(der: Buffer): string {
  const lines = der.toString('base64').replace(/.{1,64}/g, '$&\n')
  return `-----BEGIN PRIVATE KEY-----\n${lines}-----END PRIVATE KEY-----\n`
}
