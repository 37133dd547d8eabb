import { X509Certificate } from 'node:crypto'
import { isIP, type Socket } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import { type ChannelCredentials, type ChannelOptions, credentials } from '@grpc/grpc-js'

/** PEM, as the caller read it from files. */
export interface TlsMaterial {
  readonly ca?: Buffer | undefined
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
}

/**
 * Without `tls` the connection is not encrypted. The certificate must be valid for `host`. Throws
 * when the material cannot be used.
 */
export function channelCredentials(tls: TlsMaterial | undefined, host: string): ChannelCredentials {
  if (tls === undefined) return closingSockets(credentials.createInsecure())
  // Node treats a file without a certificate as an empty list, and would trust no authority at all.
  if (tls.ca !== undefined) new X509Certificate(tls.ca)
  return closingSockets(
    credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.cert ?? null, {
      checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate),
    }),
  )
}

/** SNI must not carry an IP address, but gRPC always sends a server name: a fixed one is used. */
export function nameOverride(host: string): ChannelOptions {
  return isIP(host) === 0 ? {} : { 'grpc.ssl_target_name_override': 'etcd' }
}

/**
 * When a channel is closed, gRPC leaks the socket of a connection that is still being established,
 * and that socket keeps the process alive. The connector sees every socket and is destroyed with
 * the channel, so it destroys the sockets.
 */
function closingSockets(inner: ChannelCredentials): ChannelCredentials {
  const createConnector = inner._createSecureConnector.bind(inner)
  inner._createSecureConnector = (target, options, callCredentials) => {
    const connector = createConnector(target, options, callCredentials)
    const sockets = new Set<Socket>()
    return {
      connect: (socket) => {
        sockets.add(socket)
        socket.once('close', () => sockets.delete(socket))
        return connector.connect(socket)
      },
      waitForReady: () => connector.waitForReady(),
      getCallCredentials: () => connector.getCallCredentials(),
      destroy: () => {
        connector.destroy()
        for (const socket of sockets) socket.destroy()
      },
    }
  }
  return inner
}
