import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'
import { invalid } from './errors.ts'

/** The contents of PEM files. */
export interface TlsMaterial {
  readonly ca?: Buffer | undefined
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
}

/** Throws `invalid` when the material cannot be used. */
export function secureContextOf({ ca, cert, key }: TlsMaterial): SecureContext {
  try {
    // Node treats a file without a certificate as an empty list, and would trust no authority at all.
    if (ca !== undefined) new X509Certificate(ca)
    return createSecureContext({ ca, cert, key })
  } catch (cause) {
    throw invalid('the certificates for etcd cannot be used', cause)
  }
}
