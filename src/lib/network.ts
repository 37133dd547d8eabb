import { isIPv6 } from 'node:net'

/** What callers are counted by: whoever has an address of IPv6 has all that share its first half. */
export function networkOf(address: string): string {
  if (!isIPv6(address) || address.startsWith('::ffff:')) return address
  const [head = '', tail] = address.split('::')
  const groups = head.split(':')
  return (tail === undefined ? groups : [...groups, '0', '0', '0', '0']).slice(0, 4).join(':')
}
