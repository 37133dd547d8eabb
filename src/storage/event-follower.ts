import { setTimeout as sleep } from 'node:timers/promises'
import { type EtcdClient, prefixEnd } from '../etcd/client.ts'
import { EtcdError } from '../etcd/errors.ts'
import { Latch } from '../lib/latch.ts'
import type { Log } from '../lib/log.ts'

const RETRY_MS = 1000

/**
 * Keeps up with the events in etcd: counts them at one revision, then follows every change
 * after it, for as long as the server lives. When the history it would need is gone, it starts
 * over and is not synced meanwhile.
 */
export class EventFollower {
  readonly #client: EtcdClient
  readonly #log: Log
  readonly #key: Buffer
  readonly #synced = new Latch()
  #hasSynced = false
  #count = 0

  constructor(options: { client: EtcdClient; prefix: string; log: Log }) {
    this.#client = options.client
    this.#log = options.log
    this.#key = Buffer.from(`${options.prefix}/events/`)
  }

  get hasSynced(): boolean {
    return this.#hasSynced
  }

  /** Resolves when it has synced for the first time, or never will. */
  get synced(): Promise<void> {
    return this.#synced.opened
  }

  /** How many events are stored, as far as it has come. */
  get count(): number {
    return this.#count
  }

  /** Runs until aborted. Rejects on a bug only: an etcd that is down is waited for. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#follow(signal)
      } catch (error) {
        if (!(error instanceof EtcdError)) throw error
        if (signal.aborted) break
        this.#hasSynced = false
        this.#log.warn('Cannot follow events yet', { err: error })
        await sleep(RETRY_MS, undefined, { signal }).catch(() => {})
      }
    }
    this.#synced.open()
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const range = { key: this.#key, rangeEnd: prefixEnd(this.#key) }
    const { revision, count } = await this.#client.range({ ...range, countOnly: true }, { signal })
    this.#count = count
    this.#hasSynced = true
    this.#synced.open()
    this.#log.info('Following events', { count, revision })

    const watch = this.#client.watch({ ...range, startRevision: revision + 1, signal })
    for await (const { events } of watch) {
      for (const { type, kv } of events) {
        if (type === 'delete') this.#count -= 1
        else if (kv.version === 1) this.#count += 1
      }
    }
  }
}
