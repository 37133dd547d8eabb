import type { Clock } from '../lib/clock.ts'
import { Connection, type MemberAddress } from './connection.ts'
import { invalid } from './errors.ts'
import { Member, Members } from './members.ts'
import { secureContextOf, type TlsMaterial } from './tls-material.ts'

const maxPort = 65_535

/**
 * Connects to the members at these endpoints, in the background. Throws `invalid` when an endpoint
 * or a certificate is unusable.
 */
export function openMembers(options: {
  readonly endpoints: readonly string[]
  readonly tls: TlsMaterial | undefined
  readonly clock: Clock
}): Members {
  const { clock } = options
  if (options.endpoints.length === 0) throw invalid('no etcd endpoint is given')
  const parsed = options.endpoints.map((endpoint) => ({
    endpoint,
    address: parseEndpoint(endpoint, options.tls !== undefined),
  }))
  const isEncrypted = parsed.some(({ address }) => address.isEncrypted)
  const tls = isEncrypted ? secureContextOf(options.tls ?? {}) : undefined
  return new Members((onChange, nextNumber) =>
    parsed.map(({ endpoint, address }) => {
      const open = () => new Connection({ endpoint, address, tls, onChange, nextNumber })
      return new Member({ name: endpoint, calls: open(), streams: open(), clock })
    }),
  )
}

function parseEndpoint(endpoint: string, isEncryptedByDefault: boolean): MemberAddress {
  const match = /^(?:(https?):\/\/)?(\[[^\]\s]+\]|[^/\s:]+):(\d+)\/?$/.exec(endpoint)
  const [, scheme, bracketed, port] = match ?? []
  if (bracketed === undefined || Number(port) > maxPort)
    throw invalid(`not an etcd endpoint: ${endpoint}`)
  return {
    host: bracketed.replace(/^\[|\]$/g, ''),
    port: Number(port),
    isEncrypted: scheme === undefined ? isEncryptedByDefault : scheme === 'https',
  }
}
