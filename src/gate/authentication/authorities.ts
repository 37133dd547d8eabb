import { X509Certificate } from 'node:crypto'
import type { PresentedCertificate } from '../../http/exchange.ts'
import { readBounded } from '../../lib/bounded-file.ts'
import { follow, type OnLook } from '../../lib/follow.ts'
import type { Log } from '../../lib/log.ts'
import { type CertificateFacts, certificateFacts } from './certificate-facts.ts'

const FILE_BYTES_MAX = 1024 * 1024
/** Their names are sent in every handshake. */
const AUTHORITIES_MAX = 100
/** Signatures looked at: far more than an honest chain has, whichever way its parts are tried. */
const SIGNATURES_MAX = 64

const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2'
const ANY_USAGE = '2.5.29.37.0'

/**
 * The authorities of one file. TLS has verified a certificate against those of all files together;
 * this says whether it is one of these that vouches for it, and whether it does so now: a
 * connection may outlive the certificate it was made with.
 */
export class AuthorityPool {
  readonly pem: string
  readonly #authorities: readonly X509Certificate[]
  readonly #known = new WeakMap<PresentedCertificate, readonly Period[]>()

  /** Throws, naming the file, when it holds anything but authorities. */
  constructor(path: string, pem: string) {
    this.pem = pem
    this.#authorities = authoritiesIn(path, pem)
  }

  vouchesFor(presented: PresentedCertificate, nowMs: number): boolean {
    if (!presented.isVerified) return false
    let periods = this.#known.get(presented)
    if (periods === undefined) {
      periods = new ChainSearch(presented, this.#authorities).periods()
      this.#known.set(presented, periods)
    }
    return periods.some(({ fromMs, toMs }) => nowMs >= fromMs && nowMs <= toMs)
  }

  /** Whether a certificate that one of them vouches for might be vouched for by the other as well. */
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

/** The authorities for clients and for front proxies, as their files have them now. */
export interface AuthorityFiles {
  readonly clientCaFile: string | undefined
  readonly frontProxyCaFile: string | undefined
}

interface Pools {
  readonly client: AuthorityPool | undefined
  readonly frontProxy: AuthorityPool | undefined
}

/**
 * Follows the files of both pools together, since no authority may be in both: whoever can get a
 * certificate for a user could otherwise speak for all of them.
 */
export class ClientAuthorities {
  #pools: Pools
  readonly #follower: { stop(): void }
  #onChange: (pem: string) => void = () => {}

  /** Rejects, naming the file, when one cannot be used or the two overlap. */
  static async open(files: AuthorityFiles, log: Log, onLook?: OnLook): Promise<ClientAuthorities> {
    return new ClientAuthorities(files, await loadPools(files), { log, onLook })
  }

  private constructor(
    files: AuthorityFiles,
    pools: Pools,
    { log, onLook }: { readonly log: Log; readonly onLook: OnLook | undefined },
  ) {
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
      onMended: () => log.info('Client authorities in use again, as they were', { ...files }),
      onLook,
    })
  }

  get client(): AuthorityPool | undefined {
    return this.#pools.client
  }

  get frontProxy(): AuthorityPool | undefined {
    return this.#pools.frontProxy
  }

  /** All of them, for the handshake. */
  get pem(): string {
    const { client, frontProxy } = this.#pools
    return [client, frontProxy].map((pool) => pool?.pem ?? '').join('\n')
  }

  /** One listener: whoever does the handshakes. */
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
      `${files.clientCaFile} and ${files.frontProxyCaFile} share an authority, or one of the first is signed by one of the second or the other way about: any client could then speak for all others`,
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
  if (blocks.length === 0) throw new Error(`${path} holds no PEM certificate`)
  if (blocks.length > AUTHORITIES_MAX) {
    throw new Error(`${path} holds more than ${AUTHORITIES_MAX} certificates`)
  }
  const all = blocks.map((block, index) => {
    try {
      const certificate = new X509Certificate(block)
      certificateFacts(certificate.raw)
      return certificate
    } catch (cause) {
      throw new Error(`${path}: certificate ${index + 1} cannot be read`, { cause })
    }
  })
  for (const [index, certificate] of all.entries()) {
    if (!certificate.ca) throw new Error(`${path}: certificate ${index + 1} is not an authority`)
    // Without it the handshake would find no end of the chain.
    if (!all.some((issuer) => isSignedBy(certificate, issuer))) {
      throw new Error(`${path}: the issuer of certificate ${index + 1} is missing, add it`)
    }
  }
  return all
}

/** When all certificates of a chain are valid. */
interface Period {
  readonly fromMs: number
  readonly toMs: number
}

interface Step {
  readonly certificate: X509Certificate
  readonly period: Period
  /** Authorities below, for those that limit how many there may be. */
  readonly intermediates: number
}

/**
 * Finds every way from a certificate to an authority over what came along with it. Time is left
 * out of it, so that what is found stays true for as long as the pool is.
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
    // What names an authority may vouch for is not looked into here: none, then.
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
    // What cannot be read vouches for nobody.
    return undefined
  }
}

/** `keyUsage` is what Node calls the extended one; without it, everything is allowed. */
function allowsClients({ keyUsage }: X509Certificate): boolean {
  const usages = keyUsage as readonly string[] | undefined
  return usages === undefined || usages.includes(CLIENT_AUTH) || usages.includes(ANY_USAGE)
}

function isSignedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
  } catch {
    // A key of a kind that nothing here can use has signed nothing either.
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
