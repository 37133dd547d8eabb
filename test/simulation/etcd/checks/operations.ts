/** Random requests for etcd: few keys, so that they meet; valid, at the limits, and refused. */
import type { Random } from '../../../support/random.ts'
import { message, nested } from './messages.ts'

export interface Call {
  readonly path: string
  readonly request: Buffer
  /** Short, for the report of a difference. */
  readonly text: string
}

const keys: readonly [string, ...string[]] = [
  'a',
  'a\0',
  'aa',
  'ab',
  'b',
  'b\xff',
  'c',
  '\0',
  '\xff',
]
/**
 * The end of all keys. A transaction that deletes up to it and puts a key of the deleted range makes
 * a real etcd lose the key's value at the next compaction and then exit (etcd-io/etcd#22376):
 * etcd refuses such pairs only for other ends. The server's own transactions delete single keys.
 */
const endOfKeys = '\0'
const ends: readonly [string, ...string[]] = [
  '',
  endOfKeys,
  'b',
  'b\xff',
  'c',
  'd',
  'a',
  '\xff\xff',
  'aa',
]
const leases: readonly [number, ...number[]] = [1, 2, 3, 4, 5]

/** The state that the generator needs. */
export interface Position {
  readonly revision: number
  readonly compacted: number
}

export class Operations {
  readonly #random: Random
  readonly #position: Position

  constructor(random: Random, position: Position) {
    this.#random = random
    this.#position = position
  }

  next(): Call {
    const random = this.#random
    const kind = random.below(100)
    if (kind < 20) return this.#call('KV/Range', this.range())
    if (kind < 34) return this.#call('KV/Txn', nested(2, nested(2, this.#put())))
    if (kind < 40) return this.#call('KV/Txn', nested(2, nested(3, this.#delete())))
    if (kind < 85) return this.#call('KV/Txn', this.#txn(0))
    if (kind < 97) return this.#lease()
    if (kind < 99) return this.#alarm()
    return this.#manyOps()
  }

  compaction(): Call {
    const { revision, compacted } = this.#position
    const random = this.#random
    const at = random.chance(0.2)
      ? random.pick([compacted, compacted - 1, revision + 1, 0, -3])
      : compacted + 1 + random.below(Math.max(1, revision - compacted))
    const physical = random.chance(0.5)
    return this.#call('KV/Compact', message([1, at], [2, physical]))
  }

  /** A WatchCreateRequest; one of the past gets history. */
  watch(isPast: boolean): Buffer {
    const random = this.#random
    const { revision, compacted } = this.#position
    const first = Math.max(1, compacted - 2)
    const start = isPast
      ? first + random.below(Math.max(1, revision - first + 1))
      : random.pick([0, revision + 1, revision + 3, -1])
    const create = message(
      [1, random.chance(0.1) ? '' : this.#key()],
      [2, random.chance(0.5) ? random.pick(ends) : ''],
      [3, start],
      [4, random.chance(0.3)],
      [6, random.chance(0.5)],
      [8, random.chance(0.5)],
    )
    return nested(1, create)
  }

  range(): Buffer {
    const random = this.#random
    return message(
      [1, this.#key(0.01)],
      [2, random.chance(0.6) ? random.pick(ends) : ''],
      [3, random.chance(0.4) ? random.below(5) - 1 : 0],
      [4, this.#revision()],
      [7, random.chance(0.3)],
      [8, random.chance(0.2)],
      [9, random.chance(0.15)],
    )
  }

  #put(): Buffer {
    const random = this.#random
    const value = random.pick(['', 'x', 'y', 'a longer value', 'v'.repeat(200)])
    const lease = random.chance(0.3) ? random.pick(leases) : 0
    return message([1, this.#key(0.01)], [2, value], [3, lease], [4, random.chance(0.3)])
  }

  #delete(): Buffer {
    const random = this.#random
    const picked = random.chance(0.4) ? random.pick(ends) : ''
    const end = picked === endOfKeys ? '\xff\xff' : picked
    return message([1, this.#key(0.01)], [2, end], [3, random.chance(0.4)])
  }

  #txn(depth: number): Buffer {
    const random = this.#random
    const compares = Array.from({ length: random.below(3) }, () => nested(1, this.#compare()))
    const ops = (field: number) =>
      Array.from({ length: random.below(4) }, () => nested(field, this.#op(depth)))
    return Buffer.concat([...compares, ...ops(2), ...ops(3)])
  }

  #op(depth: number): Buffer {
    const random = this.#random
    const kind = random.below(100)
    if (kind < 30) return nested(1, this.range())
    if (kind < 65) return nested(2, this.#put())
    if (kind < 84) return nested(3, this.#delete())
    if (kind < 85) return Buffer.alloc(0)
    if (depth >= 3) return nested(2, this.#put())
    return nested(4, this.#txn(depth + 1))
  }

  #compare(): Buffer {
    const random = this.#random
    const { revision } = this.#position
    const target = random.below(5)
    const operands = [
      random.below(4),
      random.chance(0.5) ? 0 : revision - random.below(20),
      random.chance(0.5) ? 0 : revision - random.below(20),
      random.pick(['', 'x', 'y', 'z']),
      random.chance(0.5) ? 0 : random.pick(leases),
    ]
    // Now and then the operand of another target.
    const field = random.chance(0.05) ? random.below(5) : target
    const operand = operands[field] ?? 0
    return message(
      [1, random.below(4)],
      [2, target],
      [3, this.#key(0.01)],
      [field + 4, operand],
      [64, random.chance(0.25) ? random.pick(ends) : ''],
    )
  }

  /** A transaction at the limit of operations, on one level or along a path. */
  #manyOps(): Call {
    const random = this.#random
    const put = (name: string) => nested(2, nested(2, message([1, name], [2, 'm'])))
    const length = 126 + random.below(4)
    const outer = random.chance(0.5) ? 0 : random.below(4)
    const inner = Array.from({ length }, (_, index) => put(`many${index}`))
    const around = Array.from({ length: outer }, (_, index) => put(`around${index}`))
    const txn =
      outer === 0
        ? Buffer.concat(inner)
        : Buffer.concat([...around, nested(2, nested(4, Buffer.concat(inner)))])
    return this.#call('KV/Txn', txn)
  }

  #lease(): Call {
    const random = this.#random
    const id = random.pick(leases)
    switch (random.below(6)) {
      case 0:
      case 1: {
        const ttl = random.pick([0, -5, 1, 5_000, 9_000_000_000, 9_000_000_001])
        return this.#call('Lease/LeaseGrant', message([1, ttl < 3 ? 5_000 : ttl], [2, id]))
      }
      case 2:
        return this.#call('Lease/LeaseRevoke', message([1, id]))
      case 3:
        return this.#call('Lease/LeaseKeepAlive', message([1, id]))
      default:
        return this.#call('Lease/LeaseTimeToLive', message([1, id]))
    }
  }

  /** NOSPACE is raised rarely and ends soon: it refuses most of the rest. */
  #alarm(): Call {
    const random = this.#random
    const kind = random.below(10)
    const member = random.pick([77, 78])
    if (kind < 4) return this.#call('Maintenance/Alarm', message([3, random.below(3)]))
    const action = random.chance(0.05) ? 1 : 2
    return this.#call('Maintenance/Alarm', message([1, action], [2, member], [3, random.below(2)]))
  }

  #key(empty: number = 0): string {
    return this.#random.chance(empty) ? '' : this.#random.pick(keys)
  }

  /** Mostly the newest. */
  #revision(): number {
    const random = this.#random
    if (random.chance(0.6)) return 0
    const { revision, compacted } = this.#position
    if (random.chance(0.1)) return random.pick([revision + 1, compacted - 1, -1, -2, revision + 9])
    return Math.max(0, compacted) + random.below(Math.max(1, revision - compacted + 1))
  }

  #call(path: string, request: Buffer): Call {
    return { path, request, text: `${path} ${request.toString('base64')}` }
  }
}
