import { ExchangeError } from './exchange.ts'
import { BROKEN, type Wire } from './wire.ts'

/**
 * Collects a request body up to a limit. A length announced beyond it is refused unread, and
 * nothing is read past it: what a client goes on sending after that is the wire's to drop.
 */
export function readBody(wire: Wire, signal: AbortSignal, bytesMax: number): Promise<Buffer> {
  if (Number(wire.headers['content-length'] ?? 0) > bytesMax)
    return Promise.reject(tooLarge(bytesMax))
  if (signal.aborted) return Promise.reject(signal.reason)
  if (wire.failure !== undefined) return Promise.reject(wire.failure)
  if (wire.headers['expect']?.toLowerCase() === '100-continue') wire.sendContinue()

  const { input } = wire
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0

    const onData = (chunk: Buffer): void => {
      length += chunk.length
      if (length > bytesMax) finish(() => reject(tooLarge(bytesMax)))
      else chunks.push(chunk)
    }
    const onEnd = (): void => {
      if (wire.isBodyWhole()) finish(() => resolve(only(chunks, length)))
      else onClose()
    }
    const onClose = (): void =>
      finish(() =>
        reject(new ExchangeError('gone', 'the client left before its body was complete')),
      )
    const onBroken = (error: ExchangeError): void => finish(() => reject(error))
    const onAbort = (): void => finish(() => reject(signal.reason))

    function finish(settle: () => void): void {
      input.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose)
      input.off(BROKEN, onBroken)
      signal.removeEventListener('abort', onAbort)
      input.pause()
      settle()
    }

    input.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose)
    input.on(BROKEN, onBroken)
    signal.addEventListener('abort', onAbort)
  })
}

/** Most bodies come in one piece, which needs no copy. */
function only(chunks: readonly Buffer[], length: number): Buffer {
  return chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks, length)
}

function tooLarge(bytesMax: number): ExchangeError {
  return new ExchangeError('too-large', `limit is ${bytesMax}`)
}
