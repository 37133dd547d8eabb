import { X509Certificate } from 'node:crypto'
import type { PresentedCertificate } from '../../http/exchange.ts'
import { readBounded } from '../../lib/files/bounded-file.ts'
import { follow, type OnPoll } from '../../lib/files/follow.ts'
import type { Log } from '../../lib/log/log.ts'
import { type CertificateFacts, certificateFacts } from './certificate-facts.ts'

const FILE_BYTES_MAX = 1024 * 1024
/** A limit, since the server sends their names in every handshake. */
const AUTHORITIES_MAX = 100
/** Signatures verified per certificate: far more than an honest chain needs, in any order. */
const SIGNATURES_MAX = 64

const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2'
const ANY_USAGE = '2.5.29.37.0'

/**
 * The authorities of one file. TLS verifies certificates against the authorities of all files
 * together. The pool decides whether one of its own authorities issued a certificate, and whether
 * the certificate is valid now: a connection may outlive the certificate of its handshake.
 */
export class AuthorityPool {
  readonly pem: string
  readonly #authorities: readonly X509Certificate[]
  readonly #known = new WeakMap<PresentedCertificate, readonly Period[]>()

  /** Throws an error that names the path when the file contains anything but authorities. */
  constructor(path: string, pem: string) {
    this.pem = pem
    this.#authorities = authoritiesIn(path, pem)
  }

  trusts(presented: PresentedCertificate, nowMs: number): boolean {
    if (!presented.isVerified) return false
    let periods = this.#known.get(presented)
    if (periods === undefined) {
      periods = new ChainSearch(presented, this.#authorities).periods()
      this.#known.set(presented, periods)
    }
    return periods.some(({ fromMs, toMs }) => nowMs >= fromMs && nowMs <= toMs)
  }

  /** Returns whether there may be a certificate that both pools trust. */
  overlaps(other: AuthorityPool): boolean {
    return this.#authorities.some((mine) =>
      other.#authorities.some(
        (theirs) =>
          mine.publicKey.equals(theirs.publicKey) ||
          isSignedBy(mine, theirs) ||
          isSignedBy(theirs, mine),
      ),
    )
  }
}

export interface AuthorityFiles {
  readonly clientCaFile: string | undefined
  readonly frontProxyCaFile: string | undefined
}

interface Pools {
  readonly client: AuthorityPool | undefined
  readonly frontProxy: AuthorityPool | undefined
}

/**
 * The authorities for clients and for front proxies. Polls the files of both together, since no
 * authority may be in both: a client with a certificate for one user could otherwise act as a front
 * proxy, for any user.
 */
export class ClientAuthorities {
  #pools: Pools
  readonly #follower: { stop(): void }
  #onChange: (pem: string) => void = () => {}

  /** Rejects when a file is unusable or the two overlap, with an error that names the path. */
  static async open(files: AuthorityFiles, log: Log, onPoll?: OnPoll): Promise<ClientAuthorities> {
    return new ClientAuthorities(files, await loadPools(files), log, onPoll)
  }

  private constructor(files: AuthorityFiles, pools: Pools, log: Log, onPoll: OnPoll | undefined) {
    this.#pools = pools
    this.#follower = follow({
      inUse: pools,
      load: (current) => loadPools(files, current),
      onChange: (found) => {
        this.#pools = found
        this.#onChange(this.pem)
        log.info('Client authorities reloaded', { ...files })
      },
      onProblem: (err) => log.warn('Client authorities not reloaded', { err }),
      onRecovered: () => log.info('Client authorities valid again, unchanged', { ...files }),
      onPoll,
    })
  }

  get client(): AuthorityPool | undefined {
    return this.#pools.client
  }

  get frontProxy(): AuthorityPool | undefined {
    return this.#pools.frontProxy
  }

  /** All authorities, for the TLS handshake. */
  get pem(): string {
    const { client, frontProxy } = this.#pools
    return [client, frontProxy].map((pool) => pool?.pem ?? '').join('\n')
  }

  /** Replaces the listener: there is only one, the TLS server. */
  onChange(listener: (pem: string) => void): void {
    this.#onChange = listener
  }

  stop(): void {
    this.#follower.stop()
  }
}

async function loadPools(files: AuthorityFiles, current?: Pools): Promise<Pools> {
  const client = await loadPool(files.clientCaFile, current?.client)
  const frontProxy = await loadPool(files.frontProxyCaFile, current?.frontProxy)
  if (current !== undefined && client === current.client && frontProxy === current.frontProxy) {
    return current
  }
  if (client !== undefined && frontProxy?.overlaps(client) === true) {
    throw new Error(
      `${files.clientCaFile} and ${files.frontProxyCaFile} share an authority, or an authority of one has signed an authority of the other: any client could then act as any user`,
    )
  }
  return { client, frontProxy }
}

async function loadPool(
  path: string | undefined,
  current: AuthorityPool | undefined,
): Promise<AuthorityPool | undefined> {
  if (path === undefined) return undefined
  const pem = String(await readBounded(path, FILE_BYTES_MAX))
  return pem === current?.pem ? current : new AuthorityPool(path, pem)
}

function authoritiesIn(path: string, pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) throw new Error(`${path} contains no PEM certificate`)
  if (blocks.length > AUTHORITIES_MAX) {
    throw new Error(`${path} contains more than ${AUTHORITIES_MAX} certificates`)
  }
  const all = blocks.map((block, index) => {
    try {
      const certificate = new X509Certificate(block)
      certificateFacts(certificate.raw)
      return certificate
    } catch (cause) {
      throw new Error(`${path}: certificate ${index + 1} cannot be parsed`, { cause })
    }
  })
  for (const [index, certificate] of all.entries()) {
    if (!certificate.ca) throw new Error(`${path}: certificate ${index + 1} is not an authority`)
    // Without its issuer, the handshake could not complete the chain.
    if (!all.some((issuer) => isSignedBy(certificate, issuer))) {
      throw new Error(`${path}: the issuer of certificate ${index + 1} is missing, add it`)
    }
  }
  return all
}

/** The time in which all certificates of a chain are valid. */
interface Period {
  readonly fromMs: number
  readonly toMs: number
}

interface Step {
  readonly certificate: X509Certificate
  readonly period: Period
  /** Number of intermediates below, compared with the path length limit of an authority. */
  readonly intermediates: number
}

/**
 * Finds every chain from a certificate to an authority over the intermediates that the client sent.
 * Ignores the current time, so that the result can be cached for as long as the pool exists.
 */
class ChainSearch {
  readonly #presented: PresentedCertificate
  readonly #authorities: readonly X509Certificate[]
  readonly #found: Period[] = []
  #signatures = 0

  constructor(presented: PresentedCertificate, authorities: readonly X509Certificate[]) {
    this.#presented = presented
    this.#authorities = authorities
  }

  periods(): readonly Period[] {
    const { leaf } = this.#presented
    if (factsOf(leaf) === undefined || !allowsClients(leaf)) return []
    this.#climb({ certificate: leaf, period: periodOf(leaf), intermediates: 0 }, [])
    return this.#found
  }

  #climb(step: Step, below: readonly X509Certificate[]): void {
    for (const authority of this.#authorities) {
      if (this.#leadsTo(step, authority)) this.#found.push(overlap(step.period, authority))
    }
    for (const next of this.#presented.intermediates) {
      if (below.includes(next) || !this.#leadsTo(step, next)) continue
      this.#climb(
        {
          certificate: next,
          period: overlap(step.period, next),
          intermediates: step.intermediates + 1,
        },
        [...below, next],
      )
    }
  }

  #leadsTo({ certificate, intermediates }: Step, issuer: X509Certificate): boolean {
    if (!issuer.ca || !allowsClients(issuer) || !certificate.checkIssued(issuer)) return false
    const facts = factsOf(issuer)
    // Name constraints are not evaluated, so an authority with them is not trusted at all.
    if (facts === undefined || facts.hasNameConstraints) return false
    if (facts.pathLength !== undefined && facts.pathLength < intermediates) return false
    this.#signatures += 1
    return this.#signatures <= SIGNATURES_MAX && isSignedBy(certificate, issuer)
  }
}

function factsOf(certificate: X509Certificate): CertificateFacts | undefined {
  try {
    return certificateFacts(certificate.raw)
  } catch {
    // A certificate that cannot be parsed is not trusted.
    return undefined
  }
}

/** `keyUsage` of Node is the extended key usage. A certificate without it allows all usages. */
function allowsClients({ keyUsage }: X509Certificate): boolean {
  const usages = keyUsage as readonly string[] | undefined
  return usages === undefined || usages.includes(CLIENT_AUTH) || usages.includes(ANY_USAGE)
}

function isSignedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
  } catch {
    // The type of key is not supported, so its signatures cannot be verified.
    return false
  }
}

function periodOf(certificate: X509Certificate): Period {
  return {
    fromMs: certificate.validFromDate.getTime(),
    toMs: certificate.validToDate.getTime(),
  }
}

function overlap(period: Period, certificate: X509Certificate): Period {
  const own = periodOf(certificate)
  return {
    fromMs: Math.max(period.fromMs, own.fromMs),
    toMs: Math.min(period.toMs, own.toMs),
  }
}
