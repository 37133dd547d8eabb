import { X509Certificate } from 'node:crypto'
import { isIP, type Socket } from 'node:net'
import { checkServerIdentity } from 'node:tls'
import { type ChannelCredentials, type ChannelOptions, credentials } from '@grpc/grpc-js'

/** PEM, as read from files by whoever calls us. */
export interface TlsMaterial {
  readonly ca?: Buffer | undefined
  readonly cert?: Buffer | undefined
  readonly key?: Buffer | undefined
}

/**
 * Without `tls` the connection is not encrypted. `host` is who the certificate must be for. Throws
 * when the material cannot be used.
 */
export function channelCredentials(tls: TlsMaterial | undefined, host: string): ChannelCredentials {
  if (tls === undefined) return closingSockets(credentials.createInsecure())
  // Node takes a file without a certificate in it for an empty list, and would trust nobody.
  if (tls.ca !== undefined) new X509Certificate(tls.ca)
  return closingSockets(
    credentials.createSsl(tls.ca ?? null, tls.key ?? null, tls.cert ?? null, {
      checkServerIdentity: (_asked, certificate) => checkServerIdentity(host, certificate),
    }),
  )
}

/** An address must not be sent as the name of a server (SNI); something has to be sent. */
export function nameOverride(host: string): ChannelOptions {
  return isIP(host) === 0 ? {} : { 'grpc.ssl_target_name_override': 'etcd' }
}

/**
 * gRPC forgets a connection that was begun and not finished when its channel is closed: the socket
 * stays, and keeps the process alive. The connector sees every socket and is told when the channel
 * ends, so the sockets are ended there.
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
