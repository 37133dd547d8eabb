import type {
  Http2SecureServer,
  Http2Session,
  IncomingHttpHeaders,
  ServerHttp2Stream,
} from 'node:http2'
import { constants } from 'node:http2'
import type { ConnectionAccount } from '../../lib/client-memory/connection-account.ts'
import type { Sessions } from '../connections/sessions.ts'
import type { Peer } from '../exchange.ts'
import { AUTHORITY_BYTES_MAX } from '../limits.ts'
import { refuse } from '../refuse.ts'
import { type RequestContext, RequestLifecycle } from '../request-lifecycle.ts'
import { Http2Wire, type SentHeaders } from './http2-wire.ts'

export interface Http2RequestsOptions {
  readonly context: RequestContext
  readonly sessions: Pick<Sessions, 'streamOpened' | 'streamClosed'>
  readonly accountOf: (session: Http2Session) => ConnectionAccount | undefined
  readonly peerOf: (session: Http2Session) => Peer | undefined
}

/** Starts the requests of HTTP/2 connections: one per stream. */
export class Http2Requests {
  readonly #options: Http2RequestsOptions

  constructor(options: Http2RequestsOptions) {
    this.#options = options
  }

  /** Must be called after the listeners for HTTP/1.1 requests are attached. */
  attach(server: Http2SecureServer): void {
    // A listener for HTTP/1.1 requests makes Node emulate such requests on HTTP/2 too, which costs
    // more than the streams themselves.
    server.removeAllListeners('stream')
    const accept = (
      stream: ServerHttp2Stream,
      headers: IncomingHttpHeaders,
      _flags: number,
      rawHeaders: string[],
    ): void => this.#accept(stream, { headers, rawHeaders })
    server.on('stream', accept)
  }

  #accept(stream: ServerHttp2Stream, sent: SentHeaders): void {
    const { context, sessions, accountOf, peerOf } = this.#options
    const { session } = stream
    // A stream fails when its client disconnects, which its 'close' event reports.
    stream.on('error', (error) => stream.destroy(error))
    // Node retains a reset stream for as long as part of its body is unread.
    stream.on('aborted', () => process.nextTick(() => stream.destroy()))
    if (session === undefined) return
    if (!sessions.streamOpened(session, stream.id ?? 0)) {
      stream.close(constants.NGHTTP2_REFUSED_STREAM)
      return
    }
    stream.on('close', () => sessions.streamClosed(session))
    const account = accountOf(session)
    const peer = peerOf(session)
    if (account === undefined || peer === undefined) return
    const wire = new Http2Wire(stream, sent, peer)
    const authority = sent.headers[':authority'] ?? sent.headers.host ?? ''
    const scheme = sent.headers[':scheme'] ?? ''
    const { headerBytesMax } = context.limits
    // Node enforces the limit of headers only once the client has acknowledged our settings.
    if (session.pendingSettingsAck && totalLength(sent.rawHeaders) > headerBytesMax)
      refuse(wire, 431, `the headers exceed ${headerBytesMax} bytes\n`)
    else if (authority.length + scheme.length > AUTHORITY_BYTES_MAX)
      refuse(wire, 431, `the host exceeds ${AUTHORITY_BYTES_MAX} bytes\n`)
    else RequestLifecycle.start(wire, context, account)
  }
}

function totalLength(texts: readonly string[]): number {
  let length = 0
  for (const text of texts) length += text.length
  return length
}
