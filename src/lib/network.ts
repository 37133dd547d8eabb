import { type AddressInfo, isIPv6 } from 'node:net'

/**
 * The key for counting clients by address. For IPv6 it is the /64 prefix: a client that has one
 * address of a /64 can usually use all of them.
 */
export function networkOf(address: string): string {
  if (!isIPv6(address) || address.startsWith('::ffff:')) return address
  const [head = '', tail] = address.split('::')
  const groups = head.split(':')
  return (tail === undefined ? groups : [...groups, '0', '0', '0', '0']).slice(0, 4).join(':')
}

/** The address as written in a URL. */
export function addressText({ address, family, port }: AddressInfo): string {
  return family === 'IPv6' ? `[${address}]:${port}` : `${address}:${port}`
}
