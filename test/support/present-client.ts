import { EtcdClient, type EtcdClientOptions } from '../../src/etcd/client.ts'
import { type Log, silentLog } from '../../src/lib/log/log.ts'
import { EtcdAvailability } from '../../src/storage/etcd/etcd-availability.ts'
import { readStatuses } from '../../src/storage/etcd/member-statuses.ts'
import { QuotaAlarm, spaceReport } from '../../src/storage/etcd/quota-alarm.ts'

/** A client with the availability and quota checks that the server has. */
export class PresentClient {
  readonly client: EtcdClient
  readonly availability: EtcdAvailability
  readonly quotaAlarm: QuotaAlarm
  readonly #end = new AbortController()

  constructor(options: EtcdClientOptions, log: Log = silentLog) {
    this.client = new EtcdClient({ ...options, onCall: (call) => this.availability.onCall(call) })
    const key = Buffer.from('/registry/health')
    this.availability = new EtcdAvailability({
      probe: (timeoutMs) => this.client.range({ key, keysOnly: true }, { timeoutMs }),
      members: () => this.client.endpoints(),
      log,
    })
    this.availability.watch(this.#end.signal)
    this.quotaAlarm = new QuotaAlarm({
      readReport: async (timeoutMs) => spaceReport(await readStatuses(this.client, { timeoutMs })),
      log,
    })
    this.quotaAlarm.watch(this.#end.signal)
  }

  close(): void {
    this.#end.abort()
    this.client.close()
  }
}
