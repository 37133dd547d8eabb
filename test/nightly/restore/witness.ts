import { setTimeout as sleep } from 'node:timers/promises'
import { ApiError, type EventClient } from '../../support/event-client.ts'
import type { Replicas } from '../../support/replicas.ts'
import type { Tidings } from '../../support/tidings.ts'
import { makeEvent, type WireEvent, type WireList } from '../../support/wire-event.ts'

const askEveryMs = 100
const examplesMax = 1
/** Concurrent requests, each in its own loop. */
const writers = 8

export const namespace = 'main'

/** How a response that may be wrong is judged. */
type Kind = 'present' | 'any'

/** Sends requests to one replica all the time, and restarts it when it has ended. */
export class Witness {
  endings = 0
  answers = 0
  wrongWhileReady = 0
  wrongPresent = 0
  mixedWatches = 0
  readonly examples: string[] = []
  readonly #index: number
  readonly #end = new AbortController()
  #server: Tidings | undefined
  #client: EventClient | undefined
  /** When replicas could first connect to the second history. */
  #secondAtMs = Number.POSITIVE_INFINITY
  /** When this process first reported ready after that. */
  #readyAtMs = Number.POSITIVE_INFINITY
  #asking: Promise<unknown> = Promise.resolve()

  constructor(index: number) {
    this.#index = index
  }

  get server(): Tidings {
    if (this.#server === undefined) throw new Error('no replica is attached')
    return this.#server
  }

  /** Starts the requests. */
  async attend(replicas: Replicas): Promise<void> {
    this.#server = replicas.server(this.#index)
    this.#client = await replicas.client(this.#index)
    this.#readyAtMs = Number.POSITIVE_INFINITY
    void this.#watch(this.#client)
    this.#asking = this.#ask(this.#server, this.#client)
  }

  secondBegan(atMs: number): void {
    this.#secondAtMs = atMs
  }

  /** Restarts the replica each time it ends, until disposed. */
  async supervise(replicas: Replicas): Promise<void> {
    while (!this.#end.signal.aborted) {
      const server = this.server
      const ended = await Promise.race([server.ended, sleep(100)])
      if (ended === undefined) continue
      this.endings++
      await this.#asking
      this.#client?.[Symbol.dispose]()
      if (this.#end.signal.aborted) return
      await replicas.startOne(this.#index)
      await this.attend(replicas)
    }
    await this.#asking
    this.#client?.[Symbol.dispose]()
  }

  leave(): void {
    this.#end.abort()
  }

  /** Creates, changes and deletes events until aborted. */
  write(signal: AbortSignal): void {
    for (let writer = 0; writer < writers; writer++) void this.#write(writer, signal)
  }

  /** The namespace, if the replica reports ready and cache and etcd agree. */
  async everything(): Promise<WireList | undefined> {
    try {
      const ready = await this.#client?.request({ path: '/readyz' })
      if (ready?.status !== 200) return undefined
      const query = { limit: 10_000 }
      const present = await this.#client?.list(namespace, query)
      const any = await this.#client?.list(namespace, { ...query, resourceVersion: 0 })
      return JSON.stringify(present?.items) === JSON.stringify(any?.items) ? present : undefined
    } catch {
      return undefined
    }
  }

  /** Sent without waiting for responses: a paused replica gets as many as a running one. */
  async #ask(server: Tidings, client: EventClient): Promise<void> {
    const underWay = new Set<Promise<void>>()
    const begin = (request: Promise<void>) => {
      const settled = request.catch(() => {}).finally(() => underWay.delete(settled))
      underWay.add(settled)
    }
    let isThere = true
    void server.ended.then(() => {
      isThere = false
    })
    while (isThere && !this.#end.signal.aborted) {
      begin(this.#askReady(client))
      begin(this.#askList(client, 'present', {}))
      begin(this.#askList(client, 'any', { resourceVersion: 0 }))
      begin(this.#askChange(client))
      await sleep(askEveryMs)
    }
    await Promise.race([Promise.all(underWay), sleep(1_000)])
  }

  async #askReady(client: EventClient): Promise<void> {
    const sentAtMs = performance.now()
    const { status } = await client.request({ path: '/readyz' })
    if (status !== 200 || sentAtMs < this.#secondAtMs || client !== this.#client) return
    this.#readyAtMs = Math.min(this.#readyAtMs, performance.now())
  }

  async #askList(
    client: EventClient,
    kind: Kind,
    query: Readonly<Record<string, number>>,
  ): Promise<void> {
    const sentAtMs = performance.now()
    const list = await client.list(namespace, query)
    const text = () => `${kind} list: ${list.items.map((item) => item.metadata.name).join(' ')}`
    this.#note(kind, sentAtMs, isFirst(list), text)
  }

  /**
   * A change that preserves the previous state in the event: the response shows what it was based on.
   */
  async #askChange(client: EventClient): Promise<void> {
    const sentAtMs = performance.now()
    if (sentAtMs < this.#secondAtMs) return
    const patch = { metadata: { annotations: { at: String(sentAtMs) } } }
    const event = await client.patch(namespace, 'shared', { type: 'merge-patch', patch })
    const text = () => `change: ${JSON.stringify(event)}`
    this.#note('present', sentAtMs, historyOf(event) !== 'second', text)
  }

  #note(kind: Kind, sentAtMs: number, isWrong: boolean, text: () => string): void {
    this.answers++
    if (!isWrong || sentAtMs < this.#secondAtMs) return
    const whileReady = sentAtMs > this.#readyAtMs
    if (whileReady) this.wrongWhileReady++
    if (kind === 'present') this.wrongPresent++
    if ((whileReady || kind === 'present') && this.examples.length < examplesMax) {
      this.examples.push(`replica ${this.#index}: ${text().slice(0, 150)}`)
    }
  }

  /** A watch from the first history on; it must not continue in the second. */
  async #watch(client: EventClient): Promise<void> {
    const histories = new Set<unknown>()
    try {
      using watch = await client.watch(namespace, {})
      for await (const { type, object } of watch) {
        if (type === 'ERROR') return
        histories.add(historyOf(object))
      }
    } catch {
    } finally {
      if (histories.has('first') && histories.has('second')) {
        this.mixedWatches++
        this.examples.push(`replica ${this.#index}: a watch delivered changes of both histories`)
      }
    }
  }

  async #write(writer: number, signal: AbortSignal): Promise<void> {
    for (let count = 0; !signal.aborted; count++) {
      const name = `busy-${this.#index}-${writer}-${count % 10}`
      try {
        await this.#client?.create(makeEvent('busy', name))
        const patch = { metadata: { labels: { count: `${count}` } } }
        await this.#client?.patch('busy', name, { type: 'merge-patch', patch })
        await this.#client?.delete('busy', name)
      } catch (error) {
        // Cut, rejected without an etcd, or it exists already: the next one may succeed.
        if (!(error instanceof ApiError)) await sleep(50)
      }
    }
  }
}

/** Returns whether a list of the namespace is one of the first history. */
function isFirst(list: WireList): boolean {
  const names = new Set(list.items.map(({ metadata }) => metadata.name))
  const hasLost = list.items.some((event) => historyOf(event) === 'first')
  return hasLost || !names.has('gone-0') || !names.has('new-0')
}

/** The history in which an event was written; `both` for before the snapshot. */
function historyOf({ metadata }: WireEvent): string | undefined {
  return metadata.labels?.['history']
}
