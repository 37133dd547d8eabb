import { createPrivateKey, randomUUID, X509Certificate } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { hostname, networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { areFiles, readPem } from '../lib/bounded-file.ts'
import { type Followed, follow } from '../lib/follow.ts'
import type { ServingCertificate } from './listener.ts'
import { makeSelfSigned } from './self-signed.ts'

/** Where a serving certificate and its key are kept. */
export interface CertificatePaths {
  readonly certFile: string
  readonly keyFile: string
}

const DAY_MS = 24 * 60 * 60 * 1000
/** A certificate we made ourselves is made anew at start when this little of its time is left. */
const RENEW_BEFORE_MS = 30 * DAY_MS

/** Reads a pair and makes sure that it is one, so that a mistake shows here and not in handshakes. */
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
 * Makes sure `dir` holds a certificate of our own for this host, and says where, and whether it
 * is a new one. One that is there already is kept, so that clients who were given it need not be
 * given another.
 */
export async function ensureSelfSigned(
  dir: string,
  address: string,
): Promise<CertificatePaths & { readonly isNew: boolean }> {
  const paths = { certFile: join(dir, 'tidings.crt'), keyFile: join(dir, 'tidings.key') }
  const isEvery = address === '0.0.0.0' || address === '::'
  const lasting = ['localhost', '127.0.0.1', '::1', hostname(), ...(isEvery ? [] : [address])]
  // Addresses come and go with interfaces; a certificate is not replaced for that.
  const hosts = isEvery ? [...new Set([...lasting, ...interfaceAddresses()])] : lasting
  if (await isStillGood(paths, lasting)) return { ...paths, isNew: false }

  const { cert, key } = await makeSelfSigned(hosts)
  await mkdir(dir, { recursive: true, mode: 0o700 })
  await replaceFile(paths.keyFile, key, 0o600)
  await replaceFile(paths.certFile, cert, 0o644)
  return { ...paths, isNew: true }
}

/**
 * Reports a pair that is not the one in use. While the two files do not fit together (one is
 * written before the other) the old pair stays, and the problem is reported once.
 */
export function followCertificate(
  paths: CertificatePaths,
  inUse: ServingCertificate,
  callbacks: Pick<Followed<ServingCertificate>, 'onChange' | 'onProblem' | 'onMended' | 'onLook'>,
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

async function isStillGood(paths: CertificatePaths, hosts: readonly string[]): Promise<boolean> {
  try {
    const { cert } = await loadCertificate(paths)
    const leaf = new X509Certificate(cert)
    if (Date.parse(leaf.validTo) - Date.now() < RENEW_BEFORE_MS) return false
    return hosts.every((host) => (leaf.checkHost(host) ?? leaf.checkIP(host)) !== undefined)
  } catch {
    // Nothing there, or nothing usable: either way a new one is made.
    return false
  }
}

async function readText(path: string): Promise<string> {
  return String(await readPem(path))
}

/** Link-local ones only mean something together with an interface, which no URL carries. */
function interfaceAddresses(): readonly string[] {
  return Object.values(networkInterfaces())
    .flatMap((list) => list ?? [])
    .map(({ address }) => address)
    .filter((address) => !address.startsWith('fe80:'))
}

/** Readers see the old file or the new one, never half of one. */
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
