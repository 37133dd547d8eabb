import type { Holding } from '../lib/client-memory/holding.ts'
import { ExchangeError, type RequestHeaders } from './exchange.ts'
import { HOLDS_TOO_MUCH } from './refuse.ts'
import type { Wire } from './wire.ts'

/**
 * Reads a request body up to a limit. A body whose announced length exceeds the limit is refused
 * unread, and nothing is read past the limit: the wire discards what the client sends after that.
 */
export function readBody(wire: Wire, { bytesMax, headers, memory }: BodyOptions): ReadBody {
  if (Number(headers['content-length'] ?? 0) > bytesMax) return failed(tooLarge(bytesMax))
  if (wire.failure !== undefined) return failed(wire.failure)
  if (headers['expect']?.toLowerCase() === '100-continue') wire.sendContinue()

  const { input } = wire
  const { promise: bytes, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let length = 0
  let isOver = false

  const onData = (chunk: Buffer): void => {
    if (isOver) return
    length += chunk.length
    if (length > bytesMax) abort(tooLarge(bytesMax))
    else if (memory.hold('body', chunk.length) !== undefined) abort(memoryLimit())
    else chunks.push(chunk)
  }
  const onEnd = (): void => {
    if (isOver) return
    isOver = true
    if (wire.isBodyWhole()) resolve(taken(chunks, length))
    else reject(incompleteBody())
  }
  function abort(reason: ExchangeError): void {
    if (isOver) return
    isOver = true
    // What the client still sends is left to `linger`, which must be the only reader.
    input.off('data', onData).off('end', onEnd)
    input.pause()
    reject(reason)
  }

  // A body that was read keeps its listeners: to remove them costs as much as to add them. When the
  // client disconnects, whoever reads the body calls `abort`.
  input.on('data', onData).on('end', onEnd)
  wire.onBodyFailed = abort
  return { bytes, abort }
}

export function incompleteBody(): ExchangeError {
  return new ExchangeError('gone', 'the client disconnected before its request body was complete')
}

export interface BodyOptions {
  readonly bytesMax: number
  readonly headers: RequestHeaders
  readonly memory: Holding
}

function failed(reason: ExchangeError): ReadBody {
  return { bytes: Promise.reject(reason), abort: () => {} }
}

/** A request body that is being read. */
export interface ReadBody {
  readonly bytes: Promise<Buffer>
  /** Stops reading and rejects `bytes`. Does nothing once the body is complete. */
  abort(reason: ExchangeError): void
}

/** Most bodies arrive in one chunk, which needs no copy. The reader keeps nothing of it. */
function taken(chunks: Buffer[], length: number): Buffer {
  const all = chunks.splice(0)
  return all.length === 1 && all[0] !== undefined ? all[0] : Buffer.concat(all, length)
}

function tooLarge(bytesMax: number): ExchangeError {
  return new ExchangeError('too-large', `limit is ${bytesMax}`)
}

function memoryLimit(): ExchangeError {
  return new ExchangeError('too-much', HOLDS_TOO_MUCH)
}
