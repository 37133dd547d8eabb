import { createPrivateKey, randomUUID, X509Certificate } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { areFiles, readPem } from '../../lib/files/bounded-file.ts'
import { type Followed, follow } from '../../lib/files/follow.ts'
import type { ServingCertificate } from './secure-context.ts'
import { makeSelfSigned } from './self-signed.ts'

/** The files of a serving certificate and its key. */
export interface CertificatePaths {
  readonly certFile: string
  readonly keyFile: string
}

const DAY_MS = 24 * 60 * 60 * 1000
/** A self-signed certificate that expires within this time is replaced at start. */
const RENEW_BEFORE_MS = 30 * DAY_MS

/**
 * Reads a certificate and its key. Rejects if they do not belong together: otherwise the mistake
 * would show only in failed handshakes.
 */
export async function loadCertificate(paths: CertificatePaths): Promise<ServingCertificate> {
  const [cert, key] = await Promise.all([readText(paths.certFile), readText(paths.keyFile)])
  const leaf = parseOr(
    () => new X509Certificate(cert),
    `${paths.certFile} holds no PEM certificate`,
  )
  const privateKey = parseOr(
    () => createPrivateKey(key),
    `${paths.keyFile} holds no PEM private key`,
  )
  if (!leaf.checkPrivateKey(privateKey)) {
    throw new Error(`${paths.keyFile} is not the key of the certificate in ${paths.certFile}`)
  }
  return { cert, key }
}

/**
 * Creates a self-signed certificate for this host in `dir`, unless there is a usable one. An
 * existing one stays, so that clients that trust it need no new file. `isNew`: created by this
 * call.
 */
export async function ensureSelfSigned(
  dir: string,
  address: string,
): Promise<CertificatePaths & { readonly isNew: boolean }> {
  const paths = { certFile: join(dir, 'tidings.crt'), keyFile: join(dir, 'tidings.key') }
  const isWildcard = address === '0.0.0.0' || address === '::'
  const required = ['localhost', '127.0.0.1', '::1', hostname(), ...(isWildcard ? [] : [address])]
  // The addresses of interfaces are added to a new certificate but not required of an existing one:
  // they change, and a certificate is not replaced for that.
  const hosts = isWildcard ? [...new Set([...required, ...interfaceAddresses()])] : required
  if (await isUsable(paths, required)) return { ...paths, isNew: false }

  const { cert, key } = await makeSelfSigned(hosts)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  await replaceFile(paths.keyFile, key, 0o600)
  await replaceFile(paths.certFile, cert, 0o644)
  return { ...paths, isNew: true }
}

/**
 * Reports a new certificate and key when the files change. While the two files do not belong
 * together (one is written before the other), the old pair stays in use and the problem is reported
 * once.
 */
export function followCertificate(
  paths: CertificatePaths,
  inUse: ServingCertificate,
  callbacks: Pick<
    Followed<ServingCertificate>,
    'onChange' | 'onProblem' | 'onRecovered' | 'onPoll'
  >,
): { stop(): void } {
  return follow({
    inUse,
    load: async (current) => {
      if (!(await areFiles([paths.certFile, paths.keyFile]))) return current
      const found = await loadCertificate(paths)
      return found.cert === current.cert && found.key === current.key ? current : found
    },
    ...callbacks,
  })
}

async function isUsable(paths: CertificatePaths, hosts: readonly string[]): Promise<boolean> {
  try {
    const { cert } = await loadCertificate(paths)
    const leaf = new X509Certificate(cert)
    if (Date.parse(leaf.validTo) - Date.now() < RENEW_BEFORE_MS) return false
    return hosts.every((host) => (leaf.checkHost(host) ?? leaf.checkIP(host)) !== undefined)
  } catch {
    // Missing or invalid: in both cases a new certificate is created.
    return false
  }
}

async function readText(path: string): Promise<string> {
  return String(await readPem(path))
}

/** Excludes link-local addresses: they need an interface name, which a URL cannot carry. */
function interfaceAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .map(({ address }) => address)
    .filter((address) => !address.startsWith('fe80:'))
}

/** Atomic: readers see the old file or the new one, never a partial one. */
async function replaceFile(path: string, content: string, mode: number): Promise<void> {
  const temporary = `${path}.${randomUUID()}.new`
  await writeFile(temporary, content, { mode, flag: 'wx' })
  await rename(temporary, path)
}

function parseOr<T>(parse: () => T, message: string): T {
  try {
    return parse()
  } catch (cause) {
    throw new Error(message, { cause })
  }
}
