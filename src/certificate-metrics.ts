/** When the certificates expire that this replica uses: its own, and those of authorities. */
import { X509Certificate } from 'node:crypto'
import { Gauge, type Registry } from '@prometheus-io/client'

/** The certificates in use that came with one flag. */
export interface CertificatesInUse {
  readonly flag: string
  /** PEM as it is in use now, several certificates if need be; undefined when there are none. */
  pem(): string | undefined
}

/** One series for each flag: the certificate that expires first. Looked up when somebody looks. */
export function showCertificates(
  registry: Registry,
  sources: () => readonly CertificatesInUse[],
): void {
  const known = new Map<string, { readonly pem: string; readonly endsAt: number | undefined }>()
  new Gauge({
    name: 'tidings_certificate_expiration_timestamp_seconds',
    help: 'When the first of the certificates in use that came with a flag expires.',
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

/** In seconds. Whatever cannot be read is left out: its users have complained about it already. */
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
