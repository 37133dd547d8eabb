/** The options of Node's servers, with the limits that Node enforces itself. */
import type { ServerOptions } from 'node:http'
import type { SecureServerOptions } from 'node:http2'
import type { HttpLimits } from './limits.ts'
import { secureContext, type TlsSettings } from './tls/secure-context.ts'

/** How often timeouts are checked. */
export const SWEEP_INTERVAL_MS = 1000
/** TCP keepalive detects peers that became unreachable, even while a watch has nothing to send. */
const TCP_KEEPALIVE_DELAY_MS = 30_000

/** The options of a server of HTTP/2 and HTTP/1.1 over TLS. */
export function secureOptions(
  tls: TlsSettings,
  limits: HttpLimits,
): SecureServerOptions & ServerOptions {
  return {
    ...secureContext(tls),
    ...connectionOptions(limits),
    // A connection that waits in `Arrivals` must not be read.
    pauseOnConnect: true,
    allowHTTP1: true,
    handshakeTimeout: limits.handshakeTimeoutMs,
    requestCert: tls.clientCa !== undefined,
    rejectUnauthorized: false,
    settings: {
      enablePush: false,
      initialWindowSize: limits.streamWindowBytes,
      maxConcurrentStreams: limits.streamsMax,
      maxHeaderListSize: limits.headerBytesMax,
    },
    maxHeaderListPairs: limits.headerCountMax,
    maxSessionInvalidFrames: limits.invalidFramesMax,
    maxSessionRejectedStreams: limits.refusedStreamsMax,
    maxSessionMemory: limits.sessionMemoryMb,
    streamResetBurst: limits.resetBurst,
    streamResetRate: limits.resetsPerSecond,
  }
}

/** The options that concern HTTP/1.1. */
export function connectionOptions(limits: HttpLimits): ServerOptions {
  return {
    headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.idleTimeoutMs,
    connectionsCheckingInterval: SWEEP_INTERVAL_MS,
    maxHeaderSize: limits.headerBytesMax,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEPALIVE_DELAY_MS,
  }
}
