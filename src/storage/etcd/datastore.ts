import { type ConnectionNumber, EtcdClient, type MemberStatus } from '../../etcd/client.ts'
import { readChecks, readQuota } from '../../etcd/member-http.ts'
import type { CallObserver, EndpointStatus } from '../../etcd/protocol/protocol.ts'
import { AbortListener } from '../../lib/abort.ts'
import { monotonicClock } from '../../lib/clock.ts'
import type { OnPoll } from '../../lib/files/follow.ts'
import type { Log } from '../../lib/log/log.ts'
import { EtcdAvailability } from './etcd-availability.ts'
import {
  credentialFlags,
  type EtcdCredentials,
  followEtcdCredentials,
  readEtcdCredentials,
} from './etcd-credentials.ts'
import { logMembers } from './member-log.ts'
import { readStatuses, StatusLog } from './member-statuses.ts'
import { QuotaAlarm, type SpaceReport, spaceReport } from './quota-alarm.ts'

export interface DatastoreOptions {
  readonly servers: readonly string[]
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
  readonly prefix: string
  readonly healthTimeoutMs: number
  /** etcd's space quota; that of its members if undefined. */
  readonly quotaBytes?: number | undefined
  readonly log: Log
  readonly onCall?: CallObserver | undefined
  /** Returns the callback that is notified whether the files of these flags are in use. */
  readonly polls?: ((...flags: readonly string[]) => OnPoll) | undefined
}

/** The part of the operator's health check timeout for etcd; the rest is for the response. */
const READ_TIMEOUT_FRACTION = 0.9
const CALL_TIMEOUT_MS = 10_000
/**
 * How often the quota of a member whose status does not have it is read. It changes when the member
 * is restarted with another one, and the operator of a full etcd waits for that.
 */
const QUOTA_INTERVAL_MS = 15_000

/**
 * The connection of the server to its etcd: credentials, the client, and the health checks. Opening
 * does not wait for etcd: every part recovers by itself.
 */
export class Datastore {
  /** Whether etcd responds; starts with `open`. */
  readonly availability: EtcdAvailability
  /** Whether etcd is full; starts with `open`. */
  readonly quotaAlarm: QuotaAlarm
  readonly #options: DatastoreOptions
  readonly #end = new AbortController()
  readonly #statusLog: StatusLog
  /** Quotas from metrics, by endpoint, and when they were last read. */
  readonly #quotas = new Map<string, number>()
  #quotasReadAt = Number.NEGATIVE_INFINITY
  #isQuotaMissing = false
  #client: EtcdClient | undefined
  #credentials: EtcdCredentials | undefined

  constructor(options: DatastoreOptions) {
    this.#options = options
    this.availability = new EtcdAvailability({
      probe: (timeoutMs) => this.#read(timeoutMs),
      members: () => this.#client?.endpoints() ?? [],
      log: options.log,
    })
    this.quotaAlarm = new QuotaAlarm({
      readReport: (timeoutMs) => this.#reportSpace(timeoutMs),
      quotaBytes: options.quotaBytes,
      log: options.log,
    })
    this.#statusLog = new StatusLog(options.log)
    this.availability.onOutage(() => void this.#logChecks())
  }

  /** Rejects when a credentials file cannot be read. */
  async open(): Promise<EtcdClient> {
    const { servers, log, onCall } = this.#options
    const tls = this.#isEncrypted() ? await readEtcdCredentials(this.#options) : undefined
    this.#end.signal.throwIfAborted()
    this.#credentials = tls
    const client = new EtcdClient({
      endpoints: servers,
      tls,
      defaultTimeoutMs: CALL_TIMEOUT_MS,
      onCall: (call) => {
        this.availability.onCall(call)
        onCall?.(call)
      },
    })
    this.#client = client
    if (tls !== undefined) this.#follow(client, tls)
    logMembers(client, log, this.#end.signal)
    this.availability.watch(this.#end.signal)
    this.quotaAlarm.watch(this.#end.signal)
    return client
  }

  /** The client certificate and the trusted authorities; undefined without TLS. */
  get credentials(): EtcdCredentials | undefined {
    return this.#credentials
  }

  /** Does a linearizable read and returns its connection; rejects with the reason when it fails. */
  async checkHealth(): Promise<ConnectionNumber> {
    if (this.#client === undefined) throw new Error('etcd client connection not yet established')
    const { healthTimeoutMs } = this.#options
    const members = this.#client.endpoints()
    // The result is known if there is no connection: do not wait for the timeout.
    if (members.every(({ state }) => state === 'failing')) {
      throw new Error(`error getting data from etcd: ${reasons(members)}`)
    }
    if (this.availability.isUnavailable) {
      throw new Error(`error getting data from etcd: ${this.availability.describe()}`)
    }
    try {
      return await this.#read(Math.ceil(healthTimeoutMs * READ_TIMEOUT_FRACTION))
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`error getting data from etcd: ${reason}`, { cause })
    }
  }

  /** How long past its deadline the most overdue call is. Above 0, this process is stuck. */
  overdueMs(): number {
    return this.#client?.overdueMs() ?? 0
  }

  close(): void {
    this.#end.abort()
    this.#client?.close()
  }

  async #read(timeoutMs: number): Promise<ConnectionNumber> {
    const key = Buffer.from(`${this.#options.prefix}/health`)
    const options = { timeoutMs, signal: this.#end.signal }
    const result = await this.#client?.range({ key, keysOnly: true }, options)
    return result?.connection ?? 0
  }

  async #reportSpace(timeoutMs: number): Promise<SpaceReport | undefined> {
    if (this.#client === undefined) return undefined
    const { signal } = this.#end
    const { onFailure } = this.#statusLog
    const statuses = await readStatuses(this.#client, { timeoutMs, signal, onFailure })
    this.#statusLog.note(statuses)
    void this.#readQuotas(statuses)
    return spaceReport(
      statuses.map((status) => ({
        ...status,
        quotaBytes: status.quotaBytes || (this.#quotas.get(status.endpoint) ?? 0),
      })),
    )
  }

  /** Reads the quotas of members whose statuses do not have them, from their metrics. */
  async #readQuotas(statuses: readonly MemberStatus[]): Promise<void> {
    const now = monotonicClock.now()
    const { quotaBytes, log } = this.#options
    const without = statuses.filter((status) => status.quotaBytes === 0)
    if (quotaBytes !== undefined || without.length === 0) return
    if (now < this.#quotasReadAt + QUOTA_INTERVAL_MS) return
    this.#quotasReadAt = now
    const options = { tls: this.#credentials, signal: this.#end.signal }
    const results = await Promise.allSettled(
      without.map(async ({ endpoint }) =>
        this.#quotas.set(endpoint, await readQuota(endpoint, options)),
      ),
    )
    const failed = results.find((result) => result.status === 'rejected')
    const isKnown = this.#quotas.size > 0 || statuses.some((status) => status.quotaBytes > 0)
    if (isKnown || this.#isQuotaMissing || options.signal.aborted) return
    this.#isQuotaMissing = true
    log.warn('The space quota of etcd is unknown: write rates are not reduced while it fills up', {
      help: 'set --etcd-quota-bytes',
      err: failed?.reason,
    })
  }

  /** Logs, once in an outage, which of their own checks the members fail. */
  async #logChecks(): Promise<void> {
    const { servers, log } = this.#options
    const options = { tls: this.#credentials, signal: this.#end.signal }
    const results = await Promise.allSettled(servers.map((server) => readChecks(server, options)))
    if (options.signal.aborted) return
    const checks = results.map((result, index) => {
      const outcome = result.status === 'rejected' ? 'does not respond' : result.value
      return `${servers[index]} ${outcome}`
    })
    log.warn('The checks of the etcd members, apart from linearizable reads', {
      checks: checks.join(', '),
    })
  }

  #isEncrypted(): boolean {
    return this.#options.servers.some((server) => server.startsWith('https:'))
  }

  /** Changed files are used for new connections; calls in flight end on the old ones. */
  #follow(client: EtcdClient, inUse: EtcdCredentials): void {
    const { log, polls } = this.#options
    const follower = followEtcdCredentials(this.#options, inUse, {
      onChange: (found) => {
        client.renewCredentials(found)
        this.#credentials = found
        log.info('Credentials for etcd reloaded')
      },
      onProblem: (err) => log.warn('Credentials for etcd not reloaded', { err }),
      onRecovered: () => log.info('Credentials for etcd valid again, unchanged'),
      onPoll: polls?.(...credentialFlags(this.#options)),
    })
    new AbortListener(this.#end.signal, () => follower.stop())
  }
}

/** Each distinct reason once, without addresses: members of a cluster mostly fail alike. */
function reasons(members: readonly EndpointStatus[]): string {
  return [...new Set(members.map(({ lastError }) => lastError?.message ?? 'no connection'))].join(
    ', ',
  )
}
