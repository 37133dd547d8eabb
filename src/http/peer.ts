import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Peer, PresentedCertificate } from './exchange.ts'
import type { ProxiedCaller } from './proxy-protocol.ts'

/** Worked out once per connection, while it is there: a handler may ask when it no longer is. */
export function peerOf(socket: Socket, caller?: ProxiedCaller): Peer {
  const ownAddress = socket.remoteAddress ?? ''
  const address = caller?.kind === 'client' ? caller.address : ownAddress
  // Whatever address a proxy names, its clients are not processes on this host.
  const isProxied = caller !== undefined && caller.kind !== 'proxy'
  const certificate = presentedCertificate(socket)
  return {
    address,
    // Both ends: a sidecar may connect from a loopback address to this host's own, for others.
    isLoopback:
      !isProxied && isLoopbackAddress(ownAddress) && isLoopbackAddress(socket.localAddress ?? ''),
    clientCertificate: () => certificate,
  }
}

/** 127.0.0.0/8 and ::1, also when IPv4 comes dressed as IPv6. */
export function isLoopbackAddress(address: string): boolean {
  if (address === '::1') return true
  const ipv4 = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
  return /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(ipv4)
}

/** A client may send along as many as a handshake holds; no honest chain is longer. */
const INTERMEDIATES_MAX = 8

/**
 * A resumed connection never shows a certificate: it would be one of an earlier handshake.
 * Resumption is off anyway; this holds should it ever be switched on.
 */
function presentedCertificate(socket: Socket): PresentedCertificate | undefined {
  if (!(socket instanceof TLSSocket) || socket.isSessionReused()) return undefined
  const leaf = socket.getPeerX509Certificate()
  if (leaf === undefined) return undefined
  // Node 24.21 shows none of these to a server (nodejs/node#65579); releases around it do.
  const intermediates = []
  let next = leaf.issuerCertificate
  while (next !== undefined && intermediates.length < INTERMEDIATES_MAX) {
    intermediates.push(next)
    next = next.issuerCertificate
  }
  return { leaf, intermediates, isVerified: socket.authorized }
}

/** The socket below that of TLS, which is known to Node alone; others are their own. */
export function belowTls(socket: Socket): Socket {
  const { _parent: below } = socket as { readonly _parent?: unknown }
  return socket instanceof TLSSocket && below instanceof Socket ? below : socket
}
