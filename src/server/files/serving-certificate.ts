import type { Listener } from '../../http/listener.ts'
import {
  type CertificatePaths,
  ensureSelfSigned,
  followCertificate,
} from '../../http/tls/certificate-files.ts'
import type { ServingCertificate } from '../../http/tls/secure-context.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Options } from '../../options/options.ts'
import type { CertificatesInUse } from '../metrics/certificates.ts'
import type { FilePollStatus } from '../metrics/files.ts'

/** The files of the serving certificate: the operator's, or a generated pair in --cert-dir. */
export async function certificatePaths(options: Options, log: Log): Promise<CertificatePaths> {
  const { tlsCertFile, tlsPrivateKeyFile, certDir, bindAddress } = options
  if (tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined) {
    return { certFile: tlsCertFile, keyFile: tlsPrivateKeyFile }
  }
  try {
    const { isNew, ...paths } = await ensureSelfSigned(certDir, bindAddress)
    if (isNew) log.info('Generated a self-signed certificate', { certFile: paths.certFile })
    return paths
  } catch (cause) {
    throw new Error(
      `cannot store a certificate in ${certDir}: set --tls-cert-file and --tls-private-key-file, or a writable --cert-dir`,
      { cause },
    )
  }
}

export interface ServedCertificate {
  readonly paths: CertificatePaths
  /** The pair that was read at start. */
  readonly certificate: ServingCertificate
  readonly listener: Pick<Listener, 'renewCertificate'>
  readonly polls: FilePollStatus
}

/** Polls the files of the serving certificate, and passes each new pair to the listener. */
export function followServingCertificate(
  { tlsCertFile }: Options,
  log: Log,
  { paths, certificate, listener, polls }: ServedCertificate,
): { readonly certificates: CertificatesInUse; stop(): void } {
  const flag = tlsCertFile === undefined ? '--cert-dir' : '--tls-cert-file'
  let inUse = certificate
  const follower = followCertificate(paths, certificate, {
    onChange: (renewed) => {
      listener.renewCertificate(renewed)
      inUse = renewed
      log.info('Serving certificate reloaded', { certFile: paths.certFile })
    },
    onProblem: (err) => log.warn('Serving certificate not reloaded', { err }),
    onRecovered: () => log.info('Serving certificate valid again, unchanged'),
    onPoll: polls(flag),
  })
  return { certificates: { flag, pem: () => inUse.cert }, stop: () => follower.stop() }
}
