import { webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import 'reflect-metadata'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509'

export const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const
const hourMs = 60 * 60 * 1000

/** A certificate and its key, both PEM. */
export interface KeyPair {
  readonly cert: Buffer
  readonly key: Buffer
}

/** A certificate authority for the length of a test. */
export class CertificateAuthority {
  /** PEM, for clients and servers that trust it. */
  readonly cert: Buffer
  readonly #certificate: X509Certificate
  readonly #keys: CryptoKeyPair

  static async create(name = 'test-ca'): Promise<CertificateAuthority> {
    const keys = await generateKeys()
    const certificate = await X509CertificateGenerator.createSelfSigned(
      {
        name: `CN=${name}`,
        ...validity(),
        signingAlgorithm: algorithm,
        keys,
        extensions: [
          new BasicConstraintsExtension(true, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        ],
      },
      webcrypto,
    )
    return new CertificateAuthority(certificate, keys)
  }

  private constructor(certificate: X509Certificate, keys: CryptoKeyPair) {
    this.#certificate = certificate
    this.#keys = keys
    this.cert = Buffer.from(certificate.toString('pem'))
  }

  /** A certificate for a server with these names and addresses. */
  issueServer(hosts: readonly string[] = ['127.0.0.1', 'localhost']): Promise<KeyPair> {
    return this.#issue(`CN=${hosts[0]}`, [
      // etcd's own gateway is a client of the same server, hence both usages.
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
      new SubjectAlternativeNameExtension(
        hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host })),
      ),
    ])
  }

  /** A certificate for a client: `user` is the common name, each group an organization. */
  issueClient(
    user: string,
    groups: readonly string[] = [],
    endsInMs: number = 24 * hourMs,
  ): Promise<KeyPair> {
    const subject = [`CN=${user}`, ...groups.map((group) => `O=${group}`)].join(', ')
    const usage = new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth])
    return this.#issue(subject, [usage], endsInMs)
  }

  async #issue(
    subject: string,
    extensions: (ExtendedKeyUsageExtension | SubjectAlternativeNameExtension)[],
    endsInMs?: number,
  ): Promise<KeyPair> {
    const keys = await generateKeys()
    const certificate = await X509CertificateGenerator.create(
      {
        subject,
        issuer: this.#certificate.subject,
        ...validity(endsInMs),
        signingAlgorithm: algorithm,
        publicKey: keys.publicKey,
        signingKey: this.#keys.privateKey,
        extensions: [
          new BasicConstraintsExtension(false, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
          ...extensions,
        ],
      },
      webcrypto,
    )
    return {
      cert: Buffer.from(certificate.toString('pem')),
      key: Buffer.from(await privateKeyPem(keys)),
    }
  }
}

type CryptoKeyPair = webcrypto.CryptoKeyPair

export async function generateKeys(): Promise<CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
}

function validity(endsInMs: number = 24 * hourMs): {
  readonly notBefore: Date
  readonly notAfter: Date
} {
  return { notBefore: new Date(Date.now() - hourMs), notAfter: new Date(Date.now() + endsInMs) }
}

export async function privateKeyPem({ privateKey }: CryptoKeyPair): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', privateKey))
  const lines = der.toString('base64').replace(/.{1,64}/g, '$&\n')
  return `-----BEGIN PRIVATE KEY-----\n${lines}-----END PRIVATE KEY-----\n`
}
