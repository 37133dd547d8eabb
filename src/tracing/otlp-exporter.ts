/** Sends spans by OTLP over gRPC, without TLS, as a Kubernetes API server does. */
import { Session, type Target } from '../grpc/session.ts'
import { decodeRejectedSpans, encodeSpans } from './otlp-messages.ts'
import type { RecordedSpan } from './trace.ts'

const PATH = '/opentelemetry.proto.collector.trace.v1.TraceService/Export'
/** How long connecting, and one export, may take. */
const EXPORT_MS_MAX = 5_000
/** The response reports at most how many spans the collector rejected, and why. */
const MAX_RESPONSE_BYTES = 64 * 1024

export interface OtlpOptions {
  /** `host:port`, or `unix:///path`. */
  readonly endpoint: string
  /** The name, version and instance of this server. */
  readonly resource: Readonly<Record<string, string>>
  /** Sent with each export, for example credentials. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export class OtlpExporter {
  readonly #options: OtlpOptions
  readonly #target: Target
  #session: Session | undefined
  #ready: Promise<void> | undefined

  constructor(options: OtlpOptions) {
    this.#options = options
    this.#target = targetOf(options.endpoint)
  }

  /**
   * Resolves to the number of spans that the collector rejected; rejects when it accepted none. One
   * call at a time.
   */
  async send(spans: readonly RecordedSpan[]): Promise<number> {
    const { resource, headers } = this.#options
    const message = encodeSpans(spans, resource)
    const session = this.#session ?? this.#connect()
    await this.#ready
    return new Promise((resolve, reject) => {
      session.unary(
        {
          path: PATH,
          metadata: headers,
          message,
          timeoutMs: EXPORT_MS_MAX,
          decode: decodeRejectedSpans,
          maxBytes: MAX_RESPONSE_BYTES,
        },
        (failure, rejected = 0) => {
          if (failure === undefined) resolve(rejected)
          else {
            // A collector that does not respond may be gone: the next export connects again.
            if (failure.origin !== 'server' && failure.mayHaveBeenApplied) this.close()
            reject(failure)
          }
        },
      )
    })
  }

  close(): void {
    this.#session?.destroy()
    this.#session = undefined
  }

  #connect(): Session {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const session = new Session({
      target: this.#target,
      onReady: resolve,
      onEnd: (error) => {
        session.drain()
        if (this.#session === session) this.#session = undefined
        reject(error ?? new Error('the collector closed the connection'))
      },
    })
    const timer = setTimeout(() => {
      if (this.#session === session) this.close()
      reject(new Error('the collector does not respond'))
    }, EXPORT_MS_MAX).unref()
    this.#session = session
    this.#ready = promise.finally(() => clearTimeout(timer))
    return session
  }
}

function targetOf(endpoint: string): Target {
  const [, path] = /^unix:\/\/(.*)$/.exec(endpoint) ?? []
  if (path !== undefined) return { path }
  const separator = endpoint.lastIndexOf(':')
  const host = endpoint.slice(0, separator).replace(/^\[|\]$/g, '')
  return { host, port: Number(endpoint.slice(separator + 1)) }
}

/** Headers that HTTP/2 forbids, or that the call itself determines. */
const RESERVED =
  /^(connection|content-(length|type)|grpc-.*|host|http2-settings|keep-alive|proxy-connection|te|transfer-encoding|upgrade)$/

/**
 * Parses one of OpenTelemetry's own variables for headers: `key=value,key=value`, percent-encoded.
 * Entries that are not of this form are ignored, as its libraries do. Throws for a header that
 * cannot be sent; the error has no value, since that may be a secret.
 */
export function headersFrom(variable: string, text: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const entry of (text ?? '').split(',')) {
    const [, key, value] = /^\s*([\w.-]+)\s*=\s*(.*?)\s*$/.exec(entry) ?? []
    if (key === undefined || value === undefined) continue
    const name = key.toLowerCase()
    if (RESERVED.test(name)) throw new Error(`${variable}: the header ${name} cannot be set`)
    headers[name] = unescaped(value)
    if (!/^[\x20-\x7e]*$/.test(headers[name])) {
      const problem = 'has a character that is not printable ASCII'
      throw new Error(`${variable}: the header ${name} ${problem}`)
    }
  }
  return headers
}

function unescaped(value: string): string {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
