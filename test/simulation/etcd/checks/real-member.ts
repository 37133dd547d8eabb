/**
 * A real etcd member, called with encoded requests like a simulated one. Speaks gRPC over HTTP/2 on
 * its own, so that a bug of tidings' client cannot hide a difference.
 */
import { type ClientHttp2Stream, connect } from 'node:http2'
import type { CallReply } from '../contract.ts'

const callTimeoutMs = 20_000
/** The bytes before each message: whether it is compressed, and its length. */
const prefixBytes = 5

/** A stream to a real member, and the messages that it has sent. */
export interface RealStream {
  readonly messages: Buffer[]
  write(message: Buffer): void
  close(): void
}

export interface RealExchange {
  readonly messages: readonly Buffer[]
  readonly end: { readonly code: number; readonly details: string }
}

export class RealMember {
  readonly #session: ReturnType<typeof connect>

  constructor(endpoint: string) {
    this.#session = connect(endpoint)
    // A member that is killed resets its connection.
    this.#session.on('error', () => {})
  }

  /** `LeaseKeepAlive`, a stream in gRPC, is a call here: one request, one reply. */
  async call(path: string, request: Buffer): Promise<CallReply> {
    const { messages, end } = await this.exchange(path, request)
    const [message] = messages
    return end.code === 0 && message !== undefined ? { code: 0, message } : end
  }

  /** Sends one request; resolves to all messages of the response and its status. */
  exchange(path: string, request: Buffer): Promise<RealExchange> {
    const stream = this.#request(path)
    const messages = messagesOf(stream)
    let end = { code: 14, details: 'the stream ended without a status' }
    const noteStatus = (headers: NodeJS.Dict<string | string[]>) => {
      const code = headers['grpc-status']
      const details = decodeURIComponent(String(headers['grpc-message'] ?? ''))
      if (code !== undefined) end = { code: Number(code), details }
    }
    stream.on('response', noteStatus)
    stream.on('trailers', noteStatus)
    stream.setTimeout(callTimeoutMs, () => stream.destroy())
    stream.end(framed(request))
    return new Promise((resolve) => {
      stream.on('close', () => resolve({ messages, end }))
    })
  }

  watch(): RealStream {
    const stream = this.#request('Watch/Watch')
    const messages = messagesOf(stream)
    return {
      messages,
      write: (message) => stream.write(framed(message)),
      close: () => stream.close(),
    }
  }

  close(): void {
    this.#session.destroy()
  }

  #request(path: string): ClientHttp2Stream {
    const stream = this.#session.request({
      ':method': 'POST',
      ':path': `/etcdserverpb.${path}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    })
    stream.on('error', () => {})
    return stream
  }
}

function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(prefixBytes)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

/** The messages of a stream, which grow while it sends. */
function messagesOf(stream: ClientHttp2Stream): Buffer[] {
  const messages: Buffer[] = []
  let rest: Buffer = Buffer.alloc(0)
  stream.on('data', (piece: Buffer) => {
    rest = Buffer.concat([rest, piece])
    while (rest.length >= prefixBytes) {
      const end = prefixBytes + rest.readUInt32BE(1)
      if (rest.length < end) return
      messages.push(rest.subarray(prefixBytes, end))
      rest = rest.subarray(end)
    }
  })
  return messages
}
