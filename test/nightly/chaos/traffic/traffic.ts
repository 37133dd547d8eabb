import { pause } from '../../../../src/lib/abort.ts'
import type { EventKey } from '../../../../src/storage/storage.ts'
import type { Seen } from '../model/history.ts'
import type { Random } from './random.ts'
import { TrafficRecord } from './record.ts'
import type { Replica } from './replica.ts'
import { cluster } from './storages.ts'
import { Writer } from './writer.ts'

/**
 * Operations come in bursts, as many as there are writers: those of one replica then share
 * transactions, which is where versions have an index.
 */
const burstIntervalMs = { least: 30, most: 170 }

/** Writers at all replicas, which perform the permitted number of operations. */
export class Traffic {
  readonly record: TrafficRecord = new TrafficRecord()
  readonly #writers: readonly Writer[]
  readonly #random: Random
  #started = 0
  #allowed = 0
  #closed = false

  constructor(options: {
    readonly replicas: readonly Replica[]
    readonly keys: number
    readonly writersPerReplica: number
    readonly random: Random
  }) {
    const { record } = this
    this.#random = options.random
    const keys = makeKeys(options.keys)
    const seen = new Map<string, Seen>()
    this.#writers = options.replicas.flatMap((replica) =>
      Array.from(
        { length: options.writersPerReplica },
        () => new Writer({ replica, keys, record, seen, random: options.random.fork() }),
      ),
    )
  }

  allow(operations: number): void {
    this.#allowed += operations
  }

  /** No more operations will be permitted. */
  close(): void {
    this.#closed = true
  }

  /** Resolves after `close`, when all permitted operations are done. */
  async run(): Promise<void> {
    const idle = [...this.#writers]
    const busy = new Set<Promise<void>>()
    while (!this.#closed || this.#started < this.#allowed) {
      for (let left = idle.length; left > 0 && this.#started < this.#allowed; left--) {
        const writer = idle.shift()
        if (writer === undefined) break
        const work: Promise<void> = writer.perform(this.#started++).finally(() => {
          busy.delete(work)
          idle.push(writer)
        })
        busy.add(work)
      }
      await pause(this.#random.between(burstIntervalMs.least, burstIntervalMs.most))
    }
    await Promise.all(busy)
  }
}

const namespaces = 5

function makeKeys(count: number): readonly [EventKey, ...EventKey[]] {
  const key = (index: number): EventKey => ({
    cluster,
    namespace: `ns${index % namespaces}`,
    name: `event-${index}`,
  })
  return [key(0), ...Array.from({ length: count - 1 }, (_, index) => key(index + 1))]
}
