/** A real etcd member, called with encoded requests like a simulated one. */
import {
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type ServiceError,
} from '@grpc/grpc-js'
import type { CallReply } from '../contract.ts'

const callTimeoutMs = 20_000

function asIs(message: Buffer): Buffer {
  return message
}

/** A stream to a real member, and what came over it. */
export interface RealStream {
  readonly messages: Buffer[]
  write(message: Buffer): void
  close(): void
}

export class RealMember {
  readonly #client: Client

  constructor(endpoint: string) {
    this.#client = new Client(endpoint.replace(/^http:\/\//, ''), credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
      'grpc.enable_http_proxy': 0,
    })
  }

  call(path: string, request: Buffer): Promise<CallReply> {
    const fullPath = `/etcdserverpb.${path}`
    if (path === 'Lease/LeaseKeepAlive') return this.#exchange(fullPath, request)
    return new Promise((resolve) => {
      this.#client.makeUnaryRequest(
        fullPath,
        asIs,
        asIs,
        request,
        { deadline: Date.now() + callTimeoutMs },
        (error: ServiceError | null, message?: Buffer) => {
          if (error !== null) resolve({ code: error.code, details: error.details })
          else resolve({ code: 0, message: message ?? Buffer.alloc(0) })
        },
      )
    })
  }

  watch(): RealStream {
    const stream = this.#stream('/etcdserverpb.Watch/Watch')
    const messages: Buffer[] = []
    stream.on('data', (message: Buffer) => messages.push(message))
    stream.on('error', () => {})
    return {
      messages,
      write: (message) => stream.write(message),
      close: () => stream.cancel(),
    }
  }

  close(): void {
    this.#client.close()
  }

  #stream(path: string): ClientDuplexStream<Buffer, Buffer> {
    return this.#client.makeBidiStreamRequest(path, asIs, asIs, new Metadata())
  }

  #exchange(path: string, request: Buffer): Promise<CallReply> {
    const stream = this.#stream(path)
    stream.write(request)
    return new Promise((resolve) => {
      stream.on('error', ({ code, details }: ServiceError) => resolve({ code, details }))
      stream.once('data', (message: Buffer) => {
        resolve({ code: 0, message })
        stream.end()
      })
    })
  }
}
