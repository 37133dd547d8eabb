import { EtcdClient, prefixEnd } from '../../../src/etcd/client.ts'

/** What happened to the events, in true time. */
export interface Verdict {
  readonly written: number
  readonly deleted: number
  /** Events that still exist. */
  readonly left: number
  /** How early and how late the worst event was deleted; an overdue one counts as late. */
  readonly earlyMs: number
  readonly lateMs: number
}

/** Follows events in etcd by the correct clock, that of the test. */
export class AgeWatcher implements AsyncDisposable {
  readonly #client: EtcdClient
  readonly #ttlMs: number
  readonly #ending = new AbortController()
  readonly #running: Promise<void>
  readonly #writtenAt = new Map<string, number>()
  /** When each deleted event was due, and when it was deleted. */
  readonly #ends: { readonly dueAt: number; readonly at: number }[] = []
  #written = 0
  /** Until then no replica ran that could have deleted anything. */
  #upAt = 0

  constructor(endpoints: readonly string[], prefix: string, ttlMs: number) {
    this.#client = new EtcdClient({ endpoints, defaultTimeoutMs: 10_000 })
    this.#ttlMs = ttlMs
    this.#running = this.#follow(Buffer.from(`${prefix}/events/`))
  }

  /** All replicas were down until now: events that became due before count as due now. */
  backUp(): void {
    this.#upAt = performance.now()
  }

  verdict(): Verdict {
    const now = performance.now()
    const overdue = [...this.#writtenAt.values()].map((at) => ({
      dueAt: at + this.#ttlMs,
      at: now,
    }))
    return {
      written: this.#written,
      deleted: this.#ends.length,
      left: this.#writtenAt.size,
      earlyMs: most(this.#ends.map(({ dueAt, at }) => dueAt - at)),
      lateMs: most([...this.#ends, ...overdue].map((each) => this.#lateMs(each))),
    }
  }

  #lateMs({ dueAt, at }: { readonly dueAt: number; readonly at: number }): number {
    return at - (at < this.#upAt ? dueAt : Math.max(dueAt, this.#upAt))
  }

  async #follow(key: Buffer): Promise<void> {
    const { signal } = this.#ending
    const request = { key, rangeEnd: prefixEnd(key), startRevision: 1, signal }
    for await (const { events } of this.#client.watch(request)) {
      for (const { type, kv } of events) {
        // The mark by which replicas recognise the history is not an event.
        if (!kv.key.equals(key)) this.#see(type, kv.key.toString())
      }
    }
  }

  #see(type: 'put' | 'delete', name: string): void {
    const now = performance.now()
    if (type === 'put') {
      if (!this.#writtenAt.has(name)) this.#written++
      this.#writtenAt.set(name, now)
      return
    }
    this.#ends.push({ dueAt: (this.#writtenAt.get(name) ?? now) + this.#ttlMs, at: now })
    this.#writtenAt.delete(name)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#running
    this.#client.close()
  }
}

function most(values: readonly number[]): number {
  return Math.round(values.reduce((greatest, value) => Math.max(greatest, value), 0))
}
