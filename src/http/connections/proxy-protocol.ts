import { isIP, isIPv4, isIPv6, SocketAddress } from 'node:net'

/** The client for whom a proxy opened a connection, according to its header. */
export type ProxiedCaller =
  | { readonly kind: 'client'; readonly address: string }
  /** A client whose address the proxy does not know or cannot encode, such as a Unix socket. */
  | { readonly kind: 'unknown' }
  /** The proxy itself, for a health check of its own. */
  | { readonly kind: 'proxy' }

export type HeaderReading =
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'malformed' }
  | { readonly kind: 'complete'; readonly bytes: number; readonly caller: ProxiedCaller }

const SIGNATURE_V1 = Buffer.from('PROXY ')
const SIGNATURE_V2 = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1')
const BYTES_MAX_V1 = 107
const FIXED_BYTES_V2 = 16
/** Addresses and type-length-value fields of version 2. Proxies send a few hundred bytes. */
const VARIABLE_BYTES_MAX_V2 = 2048

const INCOMPLETE: HeaderReading = { kind: 'incomplete' }
const MALFORMED: HeaderReading = { kind: 'malformed' }

/**
 * Parses a PROXY protocol header, version 1 or 2, at the start of what a connection has sent so
 * far. Never needs more than 2064 bytes. Skips type-length-value fields.
 */
export function readProxyHeader(sent: Buffer): HeaderReading {
  if (matchesSignature(sent, SIGNATURE_V2)) return readVersion2(sent)
  if (matchesSignature(sent, SIGNATURE_V1)) return readVersion1(sent)
  return MALFORMED
}

function matchesSignature(sent: Buffer, signature: Buffer): boolean {
  const length = Math.min(sent.length, signature.length)
  return sent.compare(signature, 0, length, 0, length) === 0
}

function readVersion1(sent: Buffer): HeaderReading {
  const end = sent.subarray(0, BYTES_MAX_V1).indexOf('\r\n')
  if (end === -1) return sent.length < BYTES_MAX_V1 ? INCOMPLETE : MALFORMED
  const words = sent.toString('latin1', 0, end).split(' ')
  const caller = callerOfWords(words)
  return caller === undefined ? MALFORMED : { kind: 'complete', bytes: end + 2, caller }
}

function callerOfWords(words: readonly string[]): ProxiedCaller | undefined {
  const [, family, source = '', destination = '', sourcePort = '', destinationPort = ''] = words
  if (family === 'UNKNOWN') return { kind: 'unknown' }
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isIPv6 : undefined
  if (isAddress === undefined || words.length !== 6) return undefined
  if (!isAddress(source) || !isAddress(destination)) return undefined
  // A zone names an interface of the proxy's host, not of this host.
  if (source.includes('%') || !isPort(sourcePort) || !isPort(destinationPort)) return undefined
  return { kind: 'client', address: normalizedAddress(source) }
}

function isPort(word: string): boolean {
  return /^(0|[1-9]\d{0,4})$/.test(word) && Number(word) <= 65_535
}

function readVersion2(sent: Buffer): HeaderReading {
  if (sent.length < FIXED_BYTES_V2) return INCOMPLETE
  const version = (sent[12] ?? 0) >> 4
  const command = (sent[12] ?? 0) & 0x0f
  const length = sent.readUInt16BE(14)
  if (version !== 2 || command > 1 || length > VARIABLE_BYTES_MAX_V2) return MALFORMED
  const bytes = FIXED_BYTES_V2 + length
  if (sent.length < bytes) return INCOMPLETE
  if (command === 0) return { kind: 'complete', bytes, caller: { kind: 'proxy' } }
  const caller = callerOfBytes(sent[13] ?? 0, sent.subarray(FIXED_BYTES_V2, bytes))
  return caller === undefined ? MALFORMED : { kind: 'complete', bytes, caller }
}

/** `family` has the address family in its upper four bits, the transport in its lower; TCP only. */
function callerOfBytes(family: number, addresses: Buffer): ProxiedCaller | undefined {
  switch (family) {
    case 0x00:
      return { kind: 'unknown' }
    case 0x11:
      if (addresses.length < 12) return undefined
      return { kind: 'client', address: addresses.subarray(0, 4).join('.') }
    case 0x21:
      if (addresses.length < 36) return undefined
      return { kind: 'client', address: normalizedAddress(ipv6Text(addresses.subarray(0, 16))) }
    case 0x31:
      return addresses.length < 216 ? undefined : { kind: 'unknown' }
    default:
      return undefined
  }
}

function ipv6Text(bytes: Buffer): string {
  const groups = Array.from({ length: 8 }, (_, index) => bytes.readUInt16BE(index * 2).toString(16))
  return groups.join(':')
}

/** The spelling that Node uses, so that one client has one address in logs and limits. */
function normalizedAddress(address: string): string {
  return new SocketAddress({ address, family: isIP(address) === 6 ? 'ipv6' : 'ipv4' }).address
}
