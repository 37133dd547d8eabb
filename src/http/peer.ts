import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Peer } from './exchange.ts'

/** Worked out once per connection, while it is there: a handler may ask when it no longer is. */
export function peerOf(socket: Socket): Peer {
  const address = socket.remoteAddress ?? ''
  const certificate = verifiedCertificate(socket)
  return {
    address,
    // Both ends: a sidecar may connect from a loopback address to this host's own, for others.
    isLoopback: isLoopbackAddress(address) && isLoopbackAddress(socket.localAddress ?? ''),
    clientCertificate: () => certificate,
  }
}

/** 127.0.0.0/8 and ::1, also when IPv4 comes dressed as IPv6. */
export function isLoopbackAddress(address: string): boolean {
  if (address === '::1') return true
  const ipv4 = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
  return /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(ipv4)
}

/**
 * A resumed connection never shows a certificate: `authorized` would then speak of an earlier
 * handshake. Resumption is off anyway; this holds should it ever be switched on.
 */
function verifiedCertificate(socket: Socket): ReturnType<Peer['clientCertificate']> {
  if (!(socket instanceof TLSSocket)) return undefined
  if (!socket.authorized || socket.isSessionReused()) return undefined
  return socket.getPeerX509Certificate()
}
