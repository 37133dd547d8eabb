import { EtcdFollower } from '../../worlds/etcd-follower.ts'

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
  readonly #follower: EtcdFollower
  readonly #ttlMs: number
  readonly #writtenAt = new Map<string, number>()
  /** When each deleted event was due, and when it was deleted. */
  readonly #ends: { readonly dueAt: number; readonly at: number }[] = []
  #written = 0
  /** Before this time no replica ran that could have deleted anything. */
  #upAt = 0

  constructor(endpoints: readonly string[], prefix: string, ttlMs: number) {
    const folder = `${prefix}/events/`
    this.#ttlMs = ttlMs
    this.#follower = new EtcdFollower({
      endpoints,
      folder,
      onChange: ({ type, kv }) => {
        const name = kv.key.toString()
        // The mark by which replicas recognise the history is not an event.
        if (name !== folder) this.#see(type, name)
      },
    })
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
    await this.#follower[Symbol.asyncDispose]()
  }
}

function most(values: readonly number[]): number {
  return Math.round(values.reduce((greatest, value) => Math.max(greatest, value), 0))
}
