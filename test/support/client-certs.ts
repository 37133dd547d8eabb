import { webcrypto } from 'node:crypto'
import 'reflect-metadata'
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type X509Certificate,
  type X509CertificateCreateParamsBase,
  X509CertificateGenerator,
} from '@peculiar/x509'
import { algorithm, generateKeys, privateKeyPem } from './certs.ts'

const HOUR_MS = 60 * 60 * 1000

/** A certificate and its key, both PEM, as TLS options take them. */
export interface ClientCertificate {
  readonly cert: string
  readonly key: string
}

export interface ClientCertificateOptions {
  /** The time until it expires, in milliseconds; negative for an expired one. */
  readonly endsInMs?: number
  readonly usage?: 'client' | 'server'
  /** The subject, if it is not only the name; each entry is an attribute by name or OID. */
  readonly subject?: readonly Readonly<Record<string, readonly string[]>>[]
}

export interface AuthorityOptions {
  readonly endsInMs?: number
  /** The path length: how many authorities there may be below it. */
  readonly pathLength?: number
}

/** Signs client certificates, for the length of a test. */
export class ClientAuthority {
  readonly cert: string
  /** The chain from this authority up to the root, itself included. */
  readonly chain: string
  readonly #certificate: X509Certificate
  readonly #keys: webcrypto.CryptoKeyPair

  static async create(name: string, options: AuthorityOptions = {}): Promise<ClientAuthority> {
    const keys = await generateKeys()
    const { endsInMs = HOUR_MS, pathLength } = options
    const certificate = await X509CertificateGenerator.createSelfSigned(
      {
        name: `CN=${name}`,
        notBefore: new Date(Date.now() - HOUR_MS),
        notAfter: new Date(Date.now() + endsInMs),
        signingAlgorithm: algorithm,
        keys,
        extensions: [new BasicConstraintsExtension(true, pathLength, true)],
      },
      webcrypto,
    )
    return new ClientAuthority(certificate, keys, '')
  }

  private constructor(
    certificate: X509Certificate,
    keys: webcrypto.CryptoKeyPair,
    chainAbove: string,
  ) {
    this.#certificate = certificate
    this.#keys = keys
    this.cert = certificate.toString('pem')
    this.chain = chainAbove
  }

  /** An intermediate authority; `chain` is what its clients have to send along. */
  async authority(name: string, options: AuthorityOptions = {}): Promise<ClientAuthority> {
    const { endsInMs = HOUR_MS, pathLength } = options
    const { certificate, keys } = await this.#sign(`CN=${name}`, endsInMs, [
      new BasicConstraintsExtension(true, pathLength, true),
    ])
    return new ClientAuthority(certificate, keys, `${certificate.toString('pem')}\n${this.chain}`)
  }

  async issue(name: string, options: ClientCertificateOptions = {}): Promise<ClientCertificate> {
    const { endsInMs = HOUR_MS, usage = 'client', subject = [{ CN: [name] }] } = options
    const purpose = usage === 'client' ? ExtendedKeyUsage.clientAuth : ExtendedKeyUsage.serverAuth
    const attributes = subject.map((entry) =>
      Object.fromEntries(Object.entries(entry).map(([key, values]) => [key, [...values]])),
    )
    const { certificate, keys } = await this.#sign(attributes, endsInMs, [
      new ExtendedKeyUsageExtension([purpose]),
    ])
    const cert = `${certificate.toString('pem')}\n${this.chain}`
    return { cert, key: await privateKeyPem(keys) }
  }

  async #sign(
    subject: string | Record<string, string[]>[],
    endsInMs: number,
    extensions: NonNullable<X509CertificateCreateParamsBase['extensions']>,
  ): Promise<{ readonly certificate: X509Certificate; readonly keys: webcrypto.CryptoKeyPair }> {
    const keys = await generateKeys()
    const certificate = await X509CertificateGenerator.create(
      {
        subject,
        issuer: this.#certificate.subject,
        notBefore: new Date(Date.now() - 2 * HOUR_MS),
        notAfter: new Date(Date.now() + endsInMs),
        signingAlgorithm: algorithm,
        signingKey: this.#keys.privateKey,
        publicKey: keys.publicKey,
        extensions,
      },
      webcrypto,
    )
    return { certificate, keys }
  }
}
