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
  return new BodyReader(wire, bytesMax, memory)
}

/** What is needed until the body is complete, and not longer: see `RequestWire.closed`. */
interface Reading {
  readonly bytesMax: number
  readonly memory: Holding
  readonly resolve: (bytes: Buffer) => void
  readonly reject: (reason: ExchangeError) => void
}

class BodyReader implements ReadBody {
  readonly bytes: Promise<Buffer>
  readonly #wire: Wire
  readonly #chunks: Buffer[] = []
  readonly #onData = (chunk: Buffer): void => this.#take(chunk)
  readonly #onEnd = (): void => this.#end()
  #length = 0
  /** Undefined when the body is complete or has failed. */
  #reading: Reading | undefined

  constructor(wire: Wire, bytesMax: number, memory: Holding) {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    this.bytes = promise
    this.#wire = wire
    this.#reading = { bytesMax, memory, resolve, reject }
    // The listeners stay after the body was read: removing them costs as much as adding them.
    wire.input.on('data', this.#onData).on('end', this.#onEnd)
    wire.onBodyFailed = (reason) => this.abort(reason)
  }

  get receivedBytes(): number | undefined {
    return this.#reading === undefined ? undefined : this.#length
  }

  abort(reason: ExchangeError): void {
    const reading = this.#reading
    if (reading === undefined) return
    this.#reading = undefined
    this.#chunks.length = 0
    // What the client still sends is left to `linger`, which must be the only reader.
    this.#wire.input.off('data', this.#onData).off('end', this.#onEnd)
    this.#wire.input.pause()
    reading.reject(reason)
  }

  #take(chunk: Buffer): void {
    if (this.#reading === undefined) return
    const { bytesMax, memory } = this.#reading
    this.#length += chunk.length
    if (this.#length > bytesMax) this.abort(tooLarge(bytesMax))
    else if (memory.hold('body', chunk.length) !== undefined) this.abort(memoryLimit())
    else this.#chunks.push(chunk)
  }

  #end(): void {
    const reading = this.#reading
    if (reading === undefined) return
    this.#reading = undefined
    const chunks = this.#chunks.splice(0)
    if (this.#wire.isBodyWhole()) reading.resolve(joined(chunks, this.#length))
    else reading.reject(incompleteBody())
  }
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
  return { bytes: Promise.reject(reason), receivedBytes: undefined, abort: () => {} }
}

/** A request body that is being read. */
export interface ReadBody {
  readonly bytes: Promise<Buffer>
  /** How much has arrived; undefined when the body is complete or has failed. */
  readonly receivedBytes: number | undefined
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
