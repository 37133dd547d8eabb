import { type ConnectionNumber, EtcdClient } from '../../etcd/client.ts'
import type { CallObserver, EndpointStatus } from '../../etcd/protocol/protocol.ts'
import { readQuota } from '../../etcd/quota.ts'
import { AbortListener, pause } from '../../lib/abort.ts'
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
import { QuotaAlarm, reportSpace, type SpaceReport } from './quota-alarm.ts'

export interface DatastoreOptions {
  readonly servers: readonly string[]
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
  readonly prefix: string
  readonly healthTimeoutMs: number
  /** etcd's space quota; read from its metrics if undefined. */
  readonly quotaBytes?: number | undefined
  readonly log: Log
  readonly onCall?: CallObserver | undefined
  /** Returns the callback that is notified whether the files of these flags are in use. */
  readonly polls?: ((...flags: readonly string[]) => OnPoll) | undefined
}

/** The part of the operator's health check timeout for etcd; the rest is for the response. */
const READ_TIMEOUT_FRACTION = 0.9
const CALL_TIMEOUT_MS = 10_000
/** Earlier releases return stale reads after a pause and lose watch progress. */
const OLDEST_GOOD_PATCHES: ReadonlyMap<string, number> = new Map([
  ['3.5', 28],
  ['3.6', 9],
])
/**
 * How often the quota is read. It changes when a member is restarted with another quota, and the
 * operator of a full etcd waits for that.
 */
const QUOTA_POLL_MS = 15_000

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
      log: options.log,
    })
    this.quotaAlarm.quotaBytes = options.quotaBytes
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

  /** Logs the version of each member, and follows the space quota until the signal aborts. */
  async inspect(signal: AbortSignal): Promise<void> {
    const versions = this.#options.servers.map((server) => this.#logVersion(server, signal))
    await Promise.all([...versions, this.#followQuota(signal)])
  }

  /** Warns of versions that cause problems. */
  async #logVersion(endpoint: string, signal: AbortSignal): Promise<void> {
    const { log } = this.#options
    const client = this.#client
    if (client === undefined || signal.aborted) return
    try {
      const { version, dbBytes } = await client.status(endpoint, { signal })
      if (!isGoodEtcdVersion(version)) {
        log.warn('This etcd has known consistency bugs; 3.5.28, 3.6.9 or newer is needed', {
          endpoint,
          version,
        })
      } else {
        log.info('Connected to etcd', { endpoint, version, dbBytes })
      }
    } catch (err) {
      if (!signal.aborted) log.warn('Cannot read the version of an etcd member', { endpoint, err })
    }
  }

  async #read(timeoutMs: number): Promise<ConnectionNumber> {
    const key = Buffer.from(`${this.#options.prefix}/health`)
    const options = { timeoutMs, signal: this.#end.signal }
    const result = await this.#client?.range({ key, keysOnly: true }, options)
    return result?.connection ?? 0
  }

  async #reportSpace(timeoutMs: number): Promise<SpaceReport | undefined> {
    const { signal } = this.#end
    return this.#client && reportSpace(this.#client, { timeoutMs, signal })
  }

  async #followQuota(signal: AbortSignal): Promise<void> {
    const { quotaBytes, log } = this.#options
    if (quotaBytes !== undefined) return
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const err = await this.#readQuota(signal)
      if (err !== undefined && isFirst && !signal.aborted) {
        log.warn(
          'The space quota of etcd is unknown: write rates are not reduced while it fills up',
          { help: 'set --etcd-quota-bytes', err },
        )
      }
      await pause(QUOTA_POLL_MS, signal)
    }
  }

  /**
   * Uses the smallest quota of any member: the first full member stops the whole cluster. Resolves
   * to the error of a member when no quota could be read.
   */
  async #readQuota(signal: AbortSignal): Promise<unknown> {
    const tls = this.#credentials
    const results = await Promise.allSettled(
      this.#options.servers.map((server) => readQuota(server, { tls, signal })),
    )
    const known = results.filter((result) => result.status === 'fulfilled')
    if (known.length > 0) {
      this.quotaAlarm.quotaBytes = Math.min(...known.map(({ value }) => value))
      return undefined
    }
    return results.find((result) => result.status === 'rejected')?.reason
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

/** Whether a release such as `3.5.30` or `3.6.9-rc.1` has none of those bugs. */
export function isGoodEtcdVersion(version: string): boolean {
  const [major = Number.NaN, minor = Number.NaN, patch = Number.NaN] = version
    .split(/[.+-]/)
    .map(Number)
  const oldest = OLDEST_GOOD_PATCHES.get(`${major}.${minor}`)
  if (oldest !== undefined) return patch >= oldest
  return major > 3 || (major === 3 && minor > 6)
}
