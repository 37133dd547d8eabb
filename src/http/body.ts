import type { Holding } from '../lib/client-memory/holding.ts'
import { ExchangeError, type RequestHeaders } from './exchange.ts'
import { HOLDS_TOO_MUCH } from './refuse.ts'
import { BODY_FAILED, type Wire } from './wire.ts'

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
    length += chunk.length
    if (length > bytesMax) abort(tooLarge(bytesMax))
    else if (memory.hold('body', chunk.length) !== undefined) abort(memoryLimit())
    else chunks.push(chunk)
  }
  const onEnd = (): void => {
    if (!wire.isBodyWhole()) onClose()
    else {
      detach()
      resolve(joined(chunks, length))
    }
  }
  const onClose = (): void =>
    abort(new ExchangeError('gone', 'the client disconnected before its request body was complete'))

  function detach(): void {
    isOver = true
    input.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
    input.off(BODY_FAILED, abort)
  }
  function abort(reason: ExchangeError): void {
    if (isOver) return
    detach()
    input.pause()
    reject(reason)
  }

  input.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  input.on(BODY_FAILED, abort)
  return { bytes, abort }
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

/** Most bodies arrive in one chunk, which needs no copy. */
function joined(chunks: readonly Buffer[], length: number): Buffer {
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length)
}

function tooLarge(bytesMax: number): ExchangeError {
  return new ExchangeError('too-large', `limit is ${bytesMax}`)
}

function memoryLimit(): ExchangeError {
  return new ExchangeError('too-much', HOLDS_TOO_MUCH)
}
