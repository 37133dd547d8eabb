import type { Holding } from '../lib/holding.ts'
import { ExchangeError, type RequestHeaders } from './exchange.ts'
import { HOLDS_TOO_MUCH } from './refuse.ts'
import { BROKEN, type Wire } from './wire.ts'

/**
 * Collects a request body up to a limit. A length announced beyond it is refused unread, and
 * nothing is read past it: what a client goes on sending after that is the wire's to drop.
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
    else if (memory.hold('body', chunk.length) !== undefined) abort(tooMuch())
    else chunks.push(chunk)
  }
  const onEnd = (): void => {
    if (!wire.isBodyWhole()) onClose()
    else {
      leave()
      resolve(only(chunks, length))
    }
  }
  const onClose = (): void =>
    abort(new ExchangeError('gone', 'the client left before its body was complete'))

  function leave(): void {
    isOver = true
    input.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
    input.off(BROKEN, abort)
  }
  function abort(reason: ExchangeError): void {
    if (isOver) return
    leave()
    input.pause()
    reject(reason)
  }

  input.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
  input.on(BROKEN, abort)
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

/** A body on its way in. */
export interface ReadBody {
  readonly bytes: Promise<Buffer>
  /** What has not come by now is not waited for. Does nothing once all of it has come. */
  abort(reason: ExchangeError): void
}

/** Most bodies come in one piece, which needs no copy. */
function only(chunks: readonly Buffer[], length: number): Buffer {
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length)
}

function tooLarge(bytesMax: number): ExchangeError {
  return new ExchangeError('too-large', `limit is ${bytesMax}`)
}

function tooMuch(): ExchangeError {
  return new ExchangeError('too-much', HOLDS_TOO_MUCH)
}
