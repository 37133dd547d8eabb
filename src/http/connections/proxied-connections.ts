import { BlockList, isIP, type Server, type Socket } from 'node:net'
import { type ProxiedCaller, readProxyHeader } from './proxy-protocol.ts'

/** Why a connection from a proxy was closed before its payload was read. */
export const PROXY_REFUSALS = ['malformed', 'timeout', 'closed'] as const
export type ProxyRefusal = (typeof PROXY_REFUSALS)[number]

export interface ProxySettings {
  /** Addresses and CIDR ranges whose connections must start with a header. No others may. */
  readonly from: readonly string[]
  /** A health check that only opens a TCP connection counts as `closed`. */
  readonly onRefused?: (reason: ProxyRefusal, address: string) => void
}

type Accept = (socket: Socket) => void

/**
 * Reads and removes the PROXY protocol header, which names the client, from connections of proxies,
 * before TLS. A connection from a proxy without a header is closed. Connections from other
 * addresses are not inspected, so with a header they fail the TLS handshake.
 */
export class ProxiedConnections {
  readonly #callers = new WeakMap<Socket, ProxiedCaller>()
  readonly #proxies: BlockList
  readonly #onRefused: ProxySettings['onRefused']
  readonly #timeoutMs: number

  constructor({ from, onRefused }: ProxySettings, timeoutMs: number) {
    this.#proxies = addressList(from)
    this.#onRefused = onRefused
    this.#timeoutMs = timeoutMs
  }

  /** Intercepts the server's 'connection' events: its listeners run after the header is read. */
  attach(server: Server): void {
    const inner = server.listeners('connection') as Accept[]
    server.removeAllListeners('connection')
    const accept: Accept = (socket) => {
      for (const listener of inner) listener.call(server, socket)
    }
    server.on('connection', (socket: Socket) => {
      const address = socket.remoteAddress ?? ''
      if (this.#isProxy(address)) this.#readHeader(socket, address, accept)
      else accept(socket)
    })
  }

  /**
   * Takes the TCP socket. Undefined for a direct connection. A connection from a proxy always has a
   * caller, even if it is unknown: it must not count as a process on this host.
   */
  callerOf(socket: Socket): ProxiedCaller | undefined {
    const named = this.#callers.get(socket)
    return named ?? (this.#isProxy(socket.remoteAddress ?? '') ? { kind: 'unknown' } : undefined)
  }

  #isProxy(address: string): boolean {
    const family = isIP(address)
    return family !== 0 && this.#proxies.check(address, family === 6 ? 'ipv6' : 'ipv4')
  }

  #readHeader(socket: Socket, address: string, accept: Accept): void {
    let sent: Buffer = Buffer.alloc(0)
    const stopReading = (): void => {
      clearTimeout(timer)
      socket.off('readable', onReadable)
      socket.off('end', onEnd)
      socket.off('error', onEnd)
    }
    const refuse = (reason: ProxyRefusal): void => {
      stopReading()
      socket.on('error', () => {})
      socket.destroy()
      this.#onRefused?.(reason, address)
    }
    const onReadable = (): void => {
      const chunk: Buffer | null = socket.read()
      if (chunk === null) return
      sent = Buffer.concat([sent, chunk])
      const header = readProxyHeader(sent)
      if (header.kind === 'incomplete') return
      if (header.kind === 'malformed') {
        refuse('malformed')
        return
      }
      stopReading()
      this.#callers.set(socket, header.caller)
      if (header.bytes < sent.length) socket.unshift(sent.subarray(header.bytes))
      accept(socket)
    }
    const onEnd = (): void => refuse('closed')
    const timer = setTimeout(() => refuse('timeout'), this.#timeoutMs)
    socket.on('readable', onReadable)
    socket.on('end', onEnd)
    socket.on('error', onEnd)
    // The listener may destroy the socket at shutdown.
    socket.once('close', () => clearTimeout(timer))
  }
}

function addressList(items: readonly string[]): BlockList {
  const list = new BlockList()
  for (const item of items) {
    const [address = '', prefix] = item.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (prefix === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(prefix), family)
  }
  return list
}
