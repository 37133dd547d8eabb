/** A collector of traces: a gRPC server that decodes the real protobuf of OTLP. */
import { once } from 'node:events'
import http2, {
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { framed, MessageSplitter } from '../../src/grpc/message-frames.ts'

const PATH = '/opentelemetry.proto.collector.trace.v1.TraceService/Export'

export interface ReceivedSpan {
  readonly traceId: string
  readonly spanId: string
  /** '' for the first span of a trace. */
  readonly parentSpanId: string
  readonly name: string
  /** 1 is internal, 2 server, 3 client. */
  readonly kind: number
  readonly startNs: bigint
  readonly endNs: bigint
  readonly attributes: Readonly<Record<string, string | number>>
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[]
  /** Undefined unless it failed. */
  readonly failure: string | undefined
  readonly resource: Readonly<Record<string, string | number>>
}

export class OtlpReceiver implements AsyncDisposable {
  readonly port: number
  readonly spans: ReceivedSpan[] = []
  /** The encoded requests. */
  readonly messages: Buffer[] = []
  /** The metadata of each export. */
  readonly headers: http2.IncomingHttpHeaders[] = []
  /** The response to each export; the default says that all spans are accepted. */
  response: Buffer = Buffer.alloc(0)
  /** The number of connections so far. */
  sessionCount = 0
  readonly #server: Http2Server
  readonly #sessions = new Set<ServerHttp2Session>()

  /** Port 0 is any free one. */
  static async start(port = 0): Promise<OtlpReceiver> {
    const server = http2.createServer()
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return new OtlpReceiver(server)
  }

  private constructor(server: Http2Server) {
    this.#server = server
    this.port = (server.address() as AddressInfo).port
    server.on('session', (session) => {
      this.sessionCount += 1
      this.#sessions.add(session)
      session.on('close', () => this.#sessions.delete(session))
    })
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      this.headers.push(headers)
      if (headers[':path'] === PATH) this.#receive(stream)
      else stream.respond({ 'grpc-status': '12' }, { endStream: true })
    })
  }

  get endpoint(): string {
    return `127.0.0.1:${this.port}`
  }

  /** The spans of the trace that has a span with this audit id, in the order of their starts. */
  traceOf(auditId: string): readonly ReceivedSpan[] {
    const root = this.spans.find(({ attributes }) => attributes['audit-id'] === auditId)
    return this.spans
      .filter(({ traceId }) => traceId === root?.traceId)
      .toSorted(
        // A whole comes before the part that begins with it.
        (one, other) => Number(one.startNs - other.startNs) || Number(other.endNs - one.endNs),
      )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const session of this.#sessions) session.destroy()
    this.#server.close()
  }

  #receive(stream: ServerHttp2Stream): void {
    const splitter = new MessageSplitter(16 * 1024 * 1024)
    stream.on('data', (chunk: Buffer) => {
      for (const message of splitter.take(chunk)) {
        this.messages.push(message)
        this.spans.push(...spansIn(message))
      }
    })
    stream.on('end', () => {
      stream.respond({ 'content-type': 'application/grpc' }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.end(framed(this.response))
    })
  }
}

/** The members of a message by field number; each may be repeated. */
type Fields = ReadonlyMap<number, readonly (Buffer | bigint | number)[]>

const VARINT = 0
const FIXED64 = 1
const BYTES = 2

function fieldsOf(message: Buffer): Fields {
  const fields = new Map<number, (Buffer | bigint | number)[]>()
  const add = (field: number, value: Buffer | bigint | number): void => {
    fields.set(field, [...(fields.get(field) ?? []), value])
  }
  for (let at = 0; at < message.length; ) {
    const [tag, afterTag] = varint(message, at)
    const field = Number(tag >> 3n)
    at = afterTag
    switch (Number(tag & 7n)) {
      case VARINT: {
        const [value, next] = varint(message, at)
        add(field, value)
        at = next
        break
      }
      case FIXED64:
        add(field, message.readBigUInt64LE(at))
        at += 8
        break
      case BYTES: {
        const [length, start] = varint(message, at)
        at = start + Number(length)
        add(field, message.subarray(start, at))
        break
      }
      default:
        add(field, message.readUInt32LE(at))
        at += 4
    }
  }
  return fields
}

function varint(message: Buffer, from: number): readonly [bigint, number] {
  let value = 0n
  for (let at = from, shift = 0n; ; at++, shift += 7n) {
    const byte = message.readUInt8(at)
    value |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return [value, at + 1]
  }
}

function messagesOf(fields: Fields, field: number): readonly Buffer[] {
  return (fields.get(field) ?? []).filter((value): value is Buffer => value instanceof Buffer)
}

function hex(fields: Fields, field: number): string {
  return messagesOf(fields, field)[0]?.toString('hex') ?? ''
}

function textOf(fields: Fields, field: number): string {
  return messagesOf(fields, field)[0]?.toString() ?? ''
}

/** ExportTraceServiceRequest: resource spans, scope spans, spans. */
function spansIn(request: Buffer): readonly ReceivedSpan[] {
  return messagesOf(fieldsOf(request), 1).flatMap((resourceSpans) => {
    const fields = fieldsOf(resourceSpans)
    const resource = attributesOf(fieldsOf(messagesOf(fields, 1)[0] ?? Buffer.alloc(0)), 1)
    return messagesOf(fields, 2)
      .flatMap((scopeSpans) => messagesOf(fieldsOf(scopeSpans), 2))
      .map((span) => readSpan(fieldsOf(span), resource))
  })
}

function readSpan(fields: Fields, resource: ReceivedSpan['resource']): ReceivedSpan {
  const status = fieldsOf(messagesOf(fields, 15)[0] ?? Buffer.alloc(0))
  return {
    traceId: hex(fields, 1),
    spanId: hex(fields, 2),
    parentSpanId: hex(fields, 4),
    name: textOf(fields, 5),
    kind: Number(fields.get(6)?.[0] ?? 0),
    startNs: BigInt(String(fields.get(7)?.[0])),
    endNs: BigInt(String(fields.get(8)?.[0])),
    attributes: attributesOf(fields, 9),
    links: messagesOf(fields, 13).map((link) => {
      const parts = fieldsOf(link)
      return { traceId: hex(parts, 1), spanId: hex(parts, 2) }
    }),
    failure: status.get(3)?.[0] === 2n ? textOf(status, 2) : undefined,
    resource,
  }
}

/** Reads KeyValue and AnyValue, but only strings and integers: the server sends no others. */
function attributesOf(fields: Fields, field: number): Record<string, string | number> {
  return Object.fromEntries(
    messagesOf(fields, field).map((pair) => {
      const parts = fieldsOf(pair)
      const value = fieldsOf(messagesOf(parts, 2)[0] ?? Buffer.alloc(0))
      const integer = value.get(3)?.[0]
      return [textOf(parts, 1), integer === undefined ? textOf(value, 1) : Number(integer)]
    }),
  )
}
