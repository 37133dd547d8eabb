import { EtcdClient, type EtcdClientOptions } from '../../src/etcd/client.ts'
import { type Log, silentLog } from '../../src/lib/log.ts'
import { Presence } from '../../src/storage/presence.ts'
import { reportSpace, Space } from '../../src/storage/space.ts'

/** A client, and somebody who looks whether etcd is there and has room, as the server has them. */
export class PresentClient {
  readonly client: EtcdClient
  readonly presence: Presence
  readonly space: Space
  readonly #end = new AbortController()

  constructor(options: EtcdClientOptions, log: Log = silentLog) {
    this.client = new EtcdClient({ ...options, onCall: (call) => this.presence.onCall(call) })
    const key = Buffer.from('/registry/health')
    this.presence = new Presence({
      ask: (timeoutMs) => this.client.range({ key, keysOnly: true }, { timeoutMs }),
      members: () => this.client.endpoints(),
      log,
    })
    this.presence.watch(this.#end.signal)
    this.space = new Space({ ask: (timeoutMs) => reportSpace(this.client, { timeoutMs }), log })
    this.space.watch(this.#end.signal)
  }

  close(): void {
    this.#end.abort()
    this.client.close()
  }
}
