/** Expiry of the certificates that this replica uses: its own, and those of authorities. */
import { X509Certificate } from 'node:crypto'
import { Gauge, type Registry } from '@prometheus-io/client'

/** The certificates in use that were read for one flag. */
export interface CertificatesInUse {
  readonly flag: string
  /** The PEM in use now, with one certificate or several; undefined when there is none. */
  pem(): string | undefined
}

/** One series per flag, for the certificate that expires first. Read at each scrape. */
export function registerCertificateMetrics(
  registry: Registry,
  sources: () => readonly CertificatesInUse[],
): void {
  const known = new Map<string, { readonly pem: string; readonly endsAt: number | undefined }>()
  new Gauge({
    name: 'tidings_certificate_expiration_timestamp_seconds',
    help: 'Expiry of the first certificate to expire among those in use that were read for a flag.',
    labelNames: ['flag'],
    registers: [registry],
    collect() {
      this.reset()
      for (const { flag, pem } of sources()) {
        const text = pem()
        if (text === undefined) continue
        let found = known.get(flag)
        if (found?.pem !== text) {
          found = { pem: text, endsAt: firstEnd(text) }
          known.set(flag, found)
        }
        if (found.endsAt !== undefined) this.set({ flag }, found.endsAt)
      }
    },
  })
}

/** Expiry in seconds. Skips certificates that cannot be parsed: their user has reported them. */
function firstEnd(pem: string): number | undefined {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  let first: number | undefined
  for (const block of blocks) {
    const endsAt = endOf(block)
    if (endsAt !== undefined && (first === undefined || endsAt < first)) first = endsAt
  }
  return first
}

function endOf(block: string): number | undefined {
  try {
    return new X509Certificate(block).validToDate.getTime() / 1000
  } catch {
    return undefined
  }
}
