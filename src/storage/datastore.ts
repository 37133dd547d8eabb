import { type ConnectionNumber, EtcdClient } from '../etcd/client.ts'
import type { CallObserver, EndpointStatus } from '../etcd/protocol.ts'
import { readQuota } from '../etcd/quota.ts'
import type { OnLook } from '../lib/follow.ts'
import type { Log } from '../lib/log.ts'
import {
  credentialFlags,
  type EtcdCredentials,
  followEtcdCredentials,
  readEtcdCredentials,
} from './etcd-credentials.ts'
import { isGoodEtcdVersion } from './etcd-version.ts'
import { logMembers } from './member-log.ts'
import { Presence } from './presence.ts'
import { reportSpace, Space, type SpaceReport } from './space.ts'

export interface DatastoreOptions {
  readonly servers: readonly string[]
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
  readonly prefix: string
  readonly healthTimeoutMs: number
  /** Undefined: etcd is asked. */
  readonly quotaBytes?: number | undefined
  readonly log: Log
  readonly onCall?: CallObserver | undefined
  /** For the files of these flags: hears whether what they say now is in use. */
  readonly looks?: ((...flags: readonly string[]) => OnLook) | undefined
}

/** A health question must be answered, not only asked, within the time the operator gave it. */
const ASKING_SHARE = 0.9
const CALL_TIMEOUT_MS = 10_000
/** A quota changes when a member is started anew with another; one that is not known may soon be. */
const QUOTA_LOOK_MS = 30_000
const QUOTA_KNOWN_LOOKS = 20

/**
 * The server's tie to its etcd: credentials, the client, and what the probes ask of it. Opening
 * does not wait for etcd to be there; everything heals by itself.
 */
export class Datastore {
  /** Whether etcd answers, from when it has been opened on. */
  readonly presence: Presence
  /** Whether it is full, likewise. */
  readonly space: Space
  readonly #options: DatastoreOptions
  readonly #end = new AbortController()
  #client: EtcdClient | undefined
  #quotaLooks = 0
  #credentials: EtcdCredentials | undefined

  constructor(options: DatastoreOptions) {
    this.#options = options
    this.presence = new Presence({
      ask: (timeoutMs) => this.#read(timeoutMs),
      members: () => this.#client?.endpoints() ?? [],
      log: options.log,
    })
    this.space = new Space({ ask: (timeoutMs) => this.#reportSpace(timeoutMs), log: options.log })
    this.space.quotaBytes = options.quotaBytes
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
        this.presence.onCall(call)
        onCall?.(call)
      },
    })
    this.#client = client
    if (tls !== undefined) this.#follow(client, tls)
    logMembers(client, log, this.#end.signal)
    this.presence.watch(this.#end.signal)
    this.space.watch(this.#end.signal)
    return client
  }

  /** What is shown to etcd, and who may vouch for it; undefined without TLS. */
  get credentials(): EtcdCredentials | undefined {
    return this.#credentials
  }

  /** Over which connection it answers a linearizable read; rejects with the reason when not in time. */
  async ask(): Promise<ConnectionNumber> {
    if (this.#client === undefined) throw new Error('etcd client connection not yet established')
    const { healthTimeoutMs } = this.#options
    const members = this.#client.endpoints()
    // Nobody to ask is an answer, and there is no need to wait for it.
    if (members.every(({ state }) => state === 'failing')) {
      throw new Error(`error getting data from etcd: ${reasons(members)}`)
    }
    if (this.presence.isAway) {
      throw new Error(`error getting data from etcd: ${this.presence.describe()}`)
    }
    try {
      return await this.#read(Math.ceil(healthTimeoutMs * ASKING_SHARE))
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw new Error(`error getting data from etcd: ${reason}`, { cause })
    }
  }

  /** How long past its deadline the most overdue call is; anything above 0 is our own fault. */
  overdueMs(): number {
    return this.#client?.overdueMs() ?? 0
  }

  close(): void {
    this.#end.abort()
    this.#client?.close()
  }

  /** Tells the log what kind of etcd this is, and warns of what will hurt later. */
  async inspect(): Promise<void> {
    const { servers, log } = this.#options
    const { signal } = this.#end
    const client = this.#client
    if (client === undefined || signal.aborted) return
    await this.#learnQuota()
    const looking = setInterval(() => void this.#learnQuota(), QUOTA_LOOK_MS).unref()
    signal.addEventListener('abort', () => clearInterval(looking))
    await Promise.all(
      servers.map(async (endpoint) => {
        try {
          const { version, dbBytes } = await client.status(endpoint, { signal })
          if (!isGoodEtcdVersion(version)) {
            log.warn('This etcd has known consistency bugs; 3.5.28 or newer is needed', {
              endpoint,
              version,
            })
          } else {
            log.info('Connected to etcd', { endpoint, version, dbBytes })
          }
        } catch (err) {
          log.warn('An etcd member did not tell its version', { endpoint, err })
        }
      }),
    )
  }

  async #read(timeoutMs: number): Promise<ConnectionNumber> {
    const key = Buffer.from(`${this.#options.prefix}/health`)
    const options = { timeoutMs, signal: this.#end.signal }
    const answer = await this.#client?.range({ key, keysOnly: true }, options)
    return answer?.connection ?? 0
  }

  async #reportSpace(timeoutMs: number): Promise<SpaceReport | undefined> {
    const { signal } = this.#end
    return this.#client && reportSpace(this.#client, { timeoutMs, signal })
  }

  /** The smallest of any member: the first that is full stops all. */
  async #learnQuota(): Promise<void> {
    const { servers, quotaBytes, log } = this.#options
    if (quotaBytes !== undefined || this.#end.signal.aborted) return
    const isFirst = this.#quotaLooks === 0
    const isTime = this.#quotaLooks++ % QUOTA_KNOWN_LOOKS === 0
    if (this.space.quotaBytes !== undefined && !isTime) return
    const told = await Promise.allSettled(
      servers.map((server) => readQuota(server, this.#credentials)),
    )
    const quotas = told.filter((one) => one.status === 'fulfilled').map(({ value }) => value)
    if (quotas.length > 0) this.space.quotaBytes = Math.min(...quotas)
    else if (isFirst) {
      log.warn(
        'The space quota of etcd is not known: writers are not slowed down while it fills up',
        {
          help: 'give --etcd-quota-bytes',
          err: told.find((one) => one.status === 'rejected')?.reason,
        },
      )
    }
  }

  #isEncrypted(): boolean {
    return this.#options.servers.some((server) => server.startsWith('https:'))
  }

  /** A changed file is used for new connections; calls under way end on the old ones. */
  #follow(client: EtcdClient, inUse: EtcdCredentials): void {
    const { log, looks } = this.#options
    const follower = followEtcdCredentials(this.#options, inUse, {
      onChange: (found) => {
        client.renewCredentials(found)
        this.#credentials = found
        log.info('Credentials for etcd reloaded')
      },
      onProblem: (err) => log.warn('Credentials for etcd not reloaded', { err }),
      onMended: () => log.info('Credentials for etcd in use again, as they were'),
      onLook: looks?.(...credentialFlags(this.#options)),
    })
    this.#end.signal.addEventListener('abort', () => follower.stop())
  }
}

/** Each different reason once; without addresses, as members of one cluster mostly fail alike. */
function reasons(members: readonly EndpointStatus[]): string {
  return [...new Set(members.map(({ lastError }) => lastError?.message ?? 'no connection'))].join(
    ', ',
  )
}
