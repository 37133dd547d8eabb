import { EtcdClient, prefixEnd } from '../../src/etcd/client.ts'

/** What became of the events, in true time. */
export interface Verdict {
  readonly written: number
  readonly deleted: number
  /** Of those that are there still. */
  readonly left: number
  /** By how much the worst one went before its time, and after it, or is overdue. */
  readonly earlyMs: number
  readonly lateMs: number
}

/** Follows events in etcd by a clock that nobody has touched: that of the test. */
export class AgeWatcher implements AsyncDisposable {
  readonly #client: EtcdClient
  readonly #ttlMs: number
  readonly #ending = new AbortController()
  readonly #running: Promise<void>
  readonly #writtenAt = new Map<string, number>()
  #written = 0
  #deleted = 0
  #earlyMs = 0
  #lateMs = 0

  constructor(endpoints: readonly string[], prefix: string, ttlMs: number) {
    this.#client = new EtcdClient({ endpoints, defaultTimeoutMs: 10_000 })
    this.#ttlMs = ttlMs
    this.#running = this.#follow(Buffer.from(`${prefix}/events/`))
  }

  verdict(): Verdict {
    const lags = [...this.#writtenAt.values()].map((at) => performance.now() - at - this.#ttlMs)
    return {
      written: this.#written,
      deleted: this.#deleted,
      left: this.#writtenAt.size,
      earlyMs: Math.round(this.#earlyMs),
      lateMs: Math.round(lags.reduce((most, lag) => Math.max(most, lag), this.#lateMs)),
    }
  }

  async #follow(key: Buffer): Promise<void> {
    const { signal } = this.#ending
    const request = { key, rangeEnd: prefixEnd(key), startRevision: 1, signal }
    for await (const { events } of this.#client.watch(request)) {
      for (const { type, kv } of events) this.#see(type, kv.key.toString())
    }
  }

  #see(type: 'put' | 'delete', name: string): void {
    const now = performance.now()
    if (type === 'put') {
      if (!this.#writtenAt.has(name)) this.#written++
      this.#writtenAt.set(name, now)
      return
    }
    const lateMs = now - (this.#writtenAt.get(name) ?? now) - this.#ttlMs
    this.#writtenAt.delete(name)
    this.#deleted++
    this.#earlyMs = Math.max(this.#earlyMs, -lateMs)
    this.#lateMs = Math.max(this.#lateMs, lateMs)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#running
    this.#client.close()
  }
}
