import { constants as tlsOptions } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'

/** Forward secrecy and authenticated encryption only; TLS 1.3 suites first. */
const CIPHERS = [
  'TLS_AES_128_GCM_SHA256',
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

export interface ServingCertificate {
  readonly cert: string
  readonly key: string
}

export interface TlsSettings {
  readonly certificate: ServingCertificate
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3'
  /** Requests client certificates and verifies them against these authorities. */
  readonly clientCa?: string
}

export function secureContext(tls: TlsSettings): SecureContextOptions {
  return {
    cert: tls.certificate.cert,
    key: tls.certificate.key,
    ...(tls.clientCa === undefined ? {} : { ca: tls.clientCa }),
    minVersion: tls.minVersion,
    ciphers: CIPHERS,
    ecdhCurve: 'X25519MLKEM768:X25519:P-256:P-384',
    honorCipherOrder: true,
    // No tickets, so no session resumption: each connection must prove its identity in a full
    // handshake.
    secureOptions: tlsOptions.SSL_OP_NO_TICKET | tlsOptions.SSL_OP_NO_RENEGOTIATION,
  }
}
