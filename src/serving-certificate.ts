import { type CertificatePaths, ensureSelfSigned } from './http/certificate-files.ts'
import type { Log } from './lib/log.ts'
import type { Options } from './options/options.ts'

/** The files of the certificate that is shown: the operator's, or one made here and kept in --cert-dir. */
export async function certificatePaths(options: Options, log: Log): Promise<CertificatePaths> {
  const { tlsCertFile, tlsPrivateKeyFile, certDir, bindAddress } = options
  if (tlsCertFile !== undefined && tlsPrivateKeyFile !== undefined) {
    return { certFile: tlsCertFile, keyFile: tlsPrivateKeyFile }
  }
  try {
    const { isNew, ...paths } = await ensureSelfSigned(certDir, bindAddress)
    if (isNew) log.info('Made a self-signed certificate', { certFile: paths.certFile })
    return paths
  } catch (cause) {
    throw new Error(
      `cannot keep a certificate in ${certDir}: give --tls-cert-file and --tls-private-key-file, or a --cert-dir that can be written`,
      { cause },
    )
  }
}
