import { EtcdClient, prefixEnd, type WatchEvent } from '../../src/etcd/client.ts'
import { eventually } from '../support/eventually.ts'

const callTimeoutMs = 2_000
const catchUpMsMax = 60_000

export interface FollowerOptions {
  readonly endpoints: readonly string[]
  /** Keys that begin with it are followed. */
  readonly folder: string
  /** Called once for each change, in order. */
  readonly onChange: (event: WatchEvent) => void
}

/**
 * Follows a real etcd from its first revision on, independently of what is tested, and past all
 * faults: it continues where it was when etcd was killed.
 */
export class EtcdFollower implements AsyncDisposable {
  readonly client: EtcdClient
  readonly #end = new AbortController()
  readonly #following: Promise<void>
  #revision = 0
  #requestProgress: () => void = () => {}

  constructor(options: FollowerOptions) {
    const { endpoints } = options
    this.client = new EtcdClient({ endpoints, defaultTimeoutMs: callTimeoutMs })
    this.#following = this.#follow(options)
    // Reported by `reached` and by the end of the scope.
    this.#following.catch(() => {})
  }

  /** Everything up to this revision was reported. */
  get revision(): number {
    return this.#revision
  }

  /** Resolves when everything up to this revision was reported; by default all that etcd has now. */
  async reached(revision?: number): Promise<void> {
    let wanted = revision
    const isReached = async () => {
      wanted ??= await this.#newestRevision()
      this.#requestProgress()
      return wanted !== undefined && this.#revision >= wanted
    }
    const reached = eventually('the history of etcd is read', isReached, catchUpMsMax)
    await Promise.race([reached, this.#following.then(() => reached)])
  }

  /** The value of a key now; undefined when there is none, or etcd does not respond. */
  async read(key: string): Promise<Buffer | undefined> {
    try {
      const { kvs } = await this.client.range({ key: Buffer.from(key) })
      return kvs[0]?.value
    } catch {
      return undefined
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#following.catch(() => {})
    this.client.close()
  }

  async #newestRevision(): Promise<number | undefined> {
    try {
      return (await this.client.range({ key: Buffer.from('x'), keysOnly: true })).revision
    } catch {
      return undefined
    }
  }

  async #follow({ folder, onChange }: FollowerOptions): Promise<void> {
    const { signal } = this.#end
    const key = Buffer.from(folder)
    const rangeEnd = prefixEnd(key)
    const watch = this.client.watch({ key, rangeEnd, startRevision: 1, prevKv: true, signal })
    this.#requestProgress = () => watch.requestProgress()
    for await (const batch of watch) {
      for (const event of batch.events) onChange(event)
      this.#revision = batch.revision
    }
  }
}
