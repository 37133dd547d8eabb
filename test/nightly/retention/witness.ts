import { EtcdClient } from '../../../src/etcd/client.ts'
import { EtcdStorage } from '../../../src/storage/etcd/etcd-storage.ts'
import type { StoredEvent } from '../../../src/storage/storage.ts'
import type { Judge } from './judge.ts'

/** Reports every change in etcd to the judge, in order. */
export class Witness implements AsyncDisposable {
  readonly #client: EtcdClient
  readonly #storage: EtcdStorage
  readonly #ending = new AbortController()
  readonly #running: Promise<void>

  constructor(endpoints: readonly string[], options: { prefix: string; judge: Judge }) {
    this.#client = new EtcdClient({ endpoints, defaultTimeoutMs: 10_000 })
    this.#storage = new EtcdStorage({
      client: this.#client,
      prefix: options.prefix,
      onCorrupt: (key) => {
        throw new Error(`not an event: ${key}`)
      },
    })
    this.#running = this.#follow(options.judge)
  }

  async #follow(judge: Judge): Promise<void> {
    const { signal } = this.#ending
    const from = await this.#storage.currentVersion({ signal })
    const all = { cluster: undefined, namespace: undefined } as const
    for await (const { items } of this.#storage.watch(all, { from, signal })) {
      for (const { type, stored } of items) {
        const { namespace, name } = stored.key
        if (type === 'put') judge.put(`${namespace}/${name}`, seenOf(stored))
        else judge.deleted(`${namespace}/${name}`)
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort()
    await this.#running
    await this.#storage.close()
    this.#client.close()
  }
}

/** Read from the JSON, not by the code that is tested. */
function seenOf({ key, body }: StoredEvent) {
  const event = JSON.parse(body.toString('utf8'))
  return {
    namespace: key.namespace,
    type: event.type,
    reason: event.reason,
    kind: event.regarding.kind,
    controller: event.reportingController,
    bytes: body.length,
    lastSeenMs: Date.parse(event.series?.lastObservedTime ?? event.eventTime),
  }
}
