/**
 * A gRPC client over node:http2 with what etcd needs, and no more: see
 * docs/decisions/0043-grpc-over-node-http2.md.
 */
import type { OutgoingHttpHeaders } from 'node:http2'
import { isIPv6 } from 'node:net'
import type { CallFailure } from './call-failure.ts'
import { Channel, type ChannelOptions, type Target } from './channel.ts'
import { DuplexCall } from './duplex-call.ts'
import { UnaryCall } from './unary-call.ts'

export interface CallOptions<Response> {
  readonly path: string
  /** A member without a leader refuses the call at once. */
  readonly needsLeader: boolean
  readonly decode: (message: Buffer) => Response
  /** A message that the server announces as longer ends the call before it is buffered. */
  readonly bytesMax: number
}

export class Client {
  readonly channel: Channel
  readonly #authority: string

  constructor(target: Target, options?: ChannelOptions) {
    this.channel = new Channel(target, options)
    const { host, port } = target
    this.#authority = `${isIPv6(host) ? `[${host}]` : host}:${port}`
  }

  /** Returns a function that cancels the call. Throws when the client is closed. */
  unary<Response>(
    options: CallOptions<Response> & { readonly message: Buffer; readonly timeoutMs: number },
    done: (failure: CallFailure | undefined, response?: Response) => void,
  ): () => void {
    const headers = this.#headers(options, options.timeoutMs)
    const call = new UnaryCall(this.channel, { ...options, headers, done })
    try {
      this.channel.add(call)
    } catch (error) {
      call.cancel()
      throw error
    }
    return () => call.cancel()
  }

  duplex<Response>(
    options: CallOptions<Response> & { readonly timeoutMs?: number | undefined },
  ): DuplexCall<Response> {
    const { decode, timeoutMs, bytesMax } = options
    const headers = this.#headers(options, timeoutMs)
    return new DuplexCall(this.channel, { headers, decode, timeoutMs, bytesMax })
  }

  close(): void {
    this.channel.close()
  }

  #headers(
    { path, needsLeader }: CallOptions<unknown>,
    timeoutMs: number | undefined,
  ): OutgoingHttpHeaders {
    const headers: OutgoingHttpHeaders = {
      ':method': 'POST',
      ':path': path,
      ':authority': this.#authority,
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': 'tidings',
    }
    if (needsLeader) headers['hasleader'] = 'true'
    if (timeoutMs !== undefined) headers['grpc-timeout'] = `${Math.max(1, Math.ceil(timeoutMs))}m`
    return headers
  }
}
