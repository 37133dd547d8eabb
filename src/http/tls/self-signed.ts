import { webcrypto } from 'node:crypto'
import { isIP } from 'node:net'
import type { ServingCertificate } from './secure-context.ts'

const VALID_DAYS = 365
const DAY_MS = 24 * 60 * 60 * 1000
/** Clients whose clock is a little behind must not find the certificate "not yet valid". */
const BACKDATED_MS = 60 * 60 * 1000

/**
 * Creates a self-signed certificate, for a server that was started without one. Clients trust it by
 * trusting the certificate file itself. The library is loaded on demand: most servers never use
 * it. With `isForClients`, the holder may present it as a client, too.
 */
export async function makeSelfSigned(
  hosts: readonly string[],
  { isForClients = false }: { readonly isForClients?: boolean } = {},
): Promise<ServingCertificate> {
  await import('reflect-metadata')
  const x509 = await import('@peculiar/x509')
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      name: `CN=tidings@${Math.floor(Date.now() / 1000)}`,
      notBefore: new Date(Date.now() - BACKDATED_MS),
      notAfter: new Date(Date.now() + VALID_DAYS * DAY_MS),
      signingAlgorithm: algorithm,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyCertSign,
          true,
        ),
        new x509.ExtendedKeyUsageExtension([
          x509.ExtendedKeyUsage.serverAuth,
          ...(isForClients ? [x509.ExtendedKeyUsage.clientAuth] : []),
        ]),
        new x509.SubjectAlternativeNameExtension(
          hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host })),
        ),
      ],
    },
    webcrypto,
  )
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', keys.privateKey))
  return { cert: `${certificate.toString('pem')}\n`, key: pem('PRIVATE KEY', pkcs8) }
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString('base64').replace(/.{1,64}/g, '$&\n')
  return `-----BEGIN ${label}-----\n${lines}-----END ${label}-----\n`
}
