import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Peer, PresentedCertificate } from '../exchange.ts'
import type { ProxiedCaller } from './proxy-protocol.ts'

/** Computed once per connection, while it is open: a handler may read it after it has closed. */
export function peerOf(socket: Socket, caller?: ProxiedCaller): Peer {
  const ownAddress = socket.remoteAddress ?? ''
  const address = caller?.kind === 'client' ? caller.address : ownAddress
  // Clients of a proxy are never processes on this host, whatever address the proxy names.
  const isProxied = caller !== undefined && caller.kind !== 'proxy'
  const certificate = presentedCertificate(socket)
  return {
    address,
    // Checks both ends: a sidecar may forward remote clients from a loopback address to an external
    // address of this host.
    isLoopback:
      !isProxied && isLoopbackAddress(ownAddress) && isLoopbackAddress(socket.localAddress ?? ''),
    clientCertificate: () => certificate,
  }
}

/** 127.0.0.0/8, plain or as IPv4-mapped IPv6, and ::1. */
export function isLoopbackAddress(address: string): boolean {
  if (address === '::1') return true
  const ipv4 = address.startsWith('::ffff:') ? address.slice('::ffff:'.length) : address
  return /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(ipv4)
}

/** A handshake may carry many more, but no valid chain is longer. */
const INTERMEDIATES_MAX = 8

/**
 * Ignores the certificate of a resumed session, which comes from an earlier handshake. Resumption
 * is disabled; this check makes it safe to enable.
 */
function presentedCertificate(socket: Socket): PresentedCertificate | undefined {
  if (!(socket instanceof TLSSocket) || socket.isSessionReused()) return undefined
  const leaf = socket.getPeerX509Certificate()
  if (leaf === undefined) return undefined
  // Node 24.21 gives a server no intermediates (nodejs/node#65579); releases before and after do.
  const intermediates = []
  let next = leaf.issuerCertificate
  while (next !== undefined && intermediates.length < INTERMEDIATES_MAX) {
    intermediates.push(next)
    next = next.issuerCertificate
  }
  return { leaf, intermediates, isVerified: socket.authorized }
}
