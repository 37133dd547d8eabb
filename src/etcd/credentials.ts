import { X509Certificate } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'

/** PEM, as the caller read it from files. */
export interface TlsMaterial {
  readonly ca?: Buffer | undefined
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
}

/** Throws when the material cannot be used. */
export function secureContextOf({ ca, cert, key }: TlsMaterial): SecureContext {
  // Node treats a file without a certificate as an empty list, and would trust no authority at all.
  if (ca !== undefined) new X509Certificate(ca)
  return createSecureContext({ ca, cert, key })
}
