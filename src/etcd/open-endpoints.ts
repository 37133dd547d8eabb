/**
 * Opens the connections to the configured members: parses the endpoints, builds the TLS
 * credentials, and gives each member one connection for calls and one for streams.
 */
import type { SecureContext } from 'node:tls'
import type { Clock } from '../lib/clock.ts'
import { Connection } from './connection.ts'
import { secureContextOf, type TlsMaterial } from './credentials.ts'
import { Endpoint, EndpointSet } from './endpoints.ts'
import { invalid } from './errors.ts'
import type { ConnectionNumber } from './protocol/protocol.ts'
import { RenewableLink } from './renewable-link.ts'

/**
 * Replaces the connections to one member in two steps: the first throws when the credentials
 * cannot be used; the second, the returned function, opens the new connections.
 */
export type PrepareRenewal = (tls: TlsMaterial) => () => void

export interface OpenEndpoints {
  readonly endpoints: EndpointSet
  /** For encrypted endpoints only. */
  readonly renewals: readonly PrepareRenewal[]
}

/** Connects in the background. Throws `invalid` when an endpoint or a certificate is unusable. */
export function openEndpoints(options: {
  readonly endpoints: readonly string[]
  readonly tls: TlsMaterial | undefined
  readonly clock: Clock
}): OpenEndpoints {
  if (options.endpoints.length === 0) throw invalid('no etcd endpoint is given')
  const { clock } = options
  const targets = options.endpoints.map((name) => parseEndpoint(name, options.tls !== undefined))
  const openers = targets.map((target) => opener(target, options.tls))
  const renewals: PrepareRenewal[] = []
  const endpoints = new EndpointSet((onChange, nextNumber) =>
    targets.map((target, index) => {
      const open = openers[index] as Opener
      const calls = new RenewableLink((changed) => open(changed, nextNumber), onChange)
      const streams = new RenewableLink((changed) => open(changed, nextNumber), onChange)
      if (target.isEncrypted) {
        renewals.push((tls) => {
          const reopen = opener(target, tls)
          return () => {
            calls.renew((changed) => reopen(changed, nextNumber))
            streams.renew((changed) => reopen(changed, nextNumber))
          }
        })
      }
      return new Endpoint({ name: target.name, calls, streams, clock })
    }),
  )
  return { endpoints, renewals }
}

/** Opens a connection; `nextNumber` returns its number once it is established. */
type Opener = (onChange: () => void, nextNumber: () => ConnectionNumber) => Connection

interface Target {
  readonly name: string
  /** The host name or address that the member's certificate must be valid for. */
  readonly host: string
  readonly port: number
  readonly isEncrypted: boolean
}

function parseEndpoint(name: string, isEncryptedByDefault: boolean): Target {
  const match = /^(?:(https?):\/\/)?(\[[^\]\s]+\]|[^/\s:]+):(\d+)\/?$/.exec(name)
  const [, scheme, bracketed, port] = match ?? []
  if (bracketed === undefined) throw invalid(`not an etcd endpoint: ${name}`)
  return {
    name,
    host: bracketed.replace(/^\[|\]$/g, ''),
    port: Number(port),
    isEncrypted: scheme === undefined ? isEncryptedByDefault : scheme === 'https',
  }
}

function secureContext(material: TlsMaterial): SecureContext {
  try {
    return secureContextOf(material)
  } catch (cause) {
    throw invalid('the certificates for etcd cannot be used', cause)
  }
}

function opener(endpoint: Target, material: TlsMaterial | undefined): Opener {
  const { name, host, port, isEncrypted } = endpoint
  const target = { host, port, tls: isEncrypted ? secureContext(material ?? {}) : undefined }
  return (onChange, nextNumber) => new Connection({ endpoint: name, target, onChange, nextNumber })
}
