/** A range that a member sends in chunks (RangeStream, etcd 3.7). */
import {
  RangeRequestSchema,
  RangeStreamResponseSchema,
} from '../../support/etcd-protocol/rpc_pb.ts'
import type { StreamIn, StreamOut } from './contract.ts'
import { type Header, isStatus, type Machine } from './machine.ts'
import { decode, encode } from './messages.ts'
import type { MemberProcess } from './process.ts'
import type { Status } from './status.ts'
import * as statuses from './status.ts'

const firstLimit = 10
/** Something may happen between two chunks: etcd reads each of them on its own. */
const chunkMs = 10

/** The member, as its range streams see it. */
export interface RangeStreamHost {
  readonly process: MemberProcess
  readonly machine: Machine
  readonly revision: number
  readonly compacted: number
  /** The size that chunks should have. */
  readonly fragmentBytes: number
  readonly hasLeader: boolean
  header(revision: number): Header
  /** Calls back when a linearizable read may begin, or with the reason why it may not. */
  waitForRead(done: (status: Status | undefined) => void): void
}

export class RangeStream implements StreamIn {
  readonly #host: RangeStreamHost
  readonly #out: StreamOut
  readonly #needsLeader: boolean
  #request = decode(RangeRequestSchema, Buffer.alloc(0))
  #limit = firstLimit
  #count = 0
  #isFull = false
  #isClosed = false

  constructor(host: RangeStreamHost, out: StreamOut, needsLeader: boolean) {
    this.#host = host
    this.#out = out
    this.#needsLeader = needsLeader
  }

  receive(message: Buffer): void {
    this.#host.process.run(() => {
      this.#request = decode(RangeRequestSchema, message)
      const { limit, serializable, countOnly } = this.#request
      if (limit !== 0n || serializable || countOnly) throw new Error('not simulated')
      if (this.#needsLeader && !this.#host.hasLeader) this.#end(statuses.noLeader)
      else if (this.#request.key.length === 0) this.#end(statuses.emptyKey)
      else {
        this.#host.waitForRead((status) => {
          if (status === undefined) this.#send()
          else this.#end(status)
        })
      }
    })
  }

  onDrain(): void {
    this.#host.process.run(() => {
      this.#isFull = false
      this.#send()
    })
  }

  close(): void {
    this.#isClosed = true
  }

  /** All chunks are of the revision at which the first one was read. */
  #send(): void {
    if (this.#isClosed || this.#isFull) return
    const { machine, fragmentBytes, process } = this.#host
    const range = { ...this.#request, limit: BigInt(this.#limit) }
    const found = machine.findRange(range, this.#host)
    if (isStatus(found) || (this.#needsLeader && !this.#host.hasLeader)) {
      this.#end(isStatus(found) ? found : statuses.noLeader)
      return
    }
    const { kvs, more, header } = found
    this.#request.revision ||= header.revision
    this.#count += kvs.length
    const last = kvs.at(-1)
    const rangeResponse =
      more && last !== undefined
        ? { kvs }
        : { header: this.#host.header(Number(header.revision)), kvs, count: BigInt(this.#count) }
    const message = encode(RangeStreamResponseSchema, { rangeResponse })
    this.#isFull = !this.#out.send(message)
    if (!more || last === undefined) {
      this.#end({ code: 0, details: '' })
      return
    }
    this.#request.key = Buffer.concat([last.key, Buffer.of(0)])
    if (message.length < fragmentBytes / 2) this.#limit *= 2
    else if (message.length > fragmentBytes * 2) this.#limit = Math.max(1, this.#limit >> 1)
    if (!this.#isFull) process.after(chunkMs, () => this.#send())
  }

  #end({ code, details }: Status): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#out.end(code, details)
  }
}
