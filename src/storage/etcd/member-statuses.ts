/**
 * The statuses of the members, once a second: how full they are (quota-alarm.ts), and what an
 * operator should know of them. It is cheap for etcd, since each member returns its local state. A
 * member that lags may not have an alarm yet, so all members are asked.
 */
import type { EtcdClient, MemberStatus } from '../../etcd/client.ts'
import { EtcdError, type EtcdErrorKind } from '../../etcd/errors.ts'
import type { Log } from '../../lib/log/log.ts'

/** Earlier releases return stale reads after a pause and lose watch progress. */
const OLDEST_GOOD_PATCHES: ReadonlyMap<string, number> = new Map([
  ['3.5', 28],
  ['3.6', 9],
])
/** It was made before those fixes; the later pre-releases of 3.7 have them. */
const BAD_PRERELEASE = /^3\.7\.0-alpha\./

/** Failures of members that cannot be reached, which other lines report. */
const UNREACHED: ReadonlySet<EtcdErrorKind> = new Set(['unavailable', 'timeout', 'cancelled'])

/** The statuses of the members that are connected and respond. Never rejects. */
export async function readStatuses(
  client: Pick<EtcdClient, 'endpoints' | 'status'>,
  options: {
    readonly timeoutMs: number
    readonly signal?: AbortSignal | undefined
    readonly onFailure?: ((endpoint: string, err: EtcdError) => void) | undefined
  },
): Promise<readonly MemberStatus[]> {
  const members = client.endpoints().filter(({ state }) => state === 'ready')
  const statuses = await Promise.all(
    members.map(async ({ endpoint }) => {
      try {
        return await client.status(endpoint, options)
      } catch (err) {
        if (err instanceof EtcdError) options.onFailure?.(endpoint, err)
        return undefined
      }
    }),
  )
  return statuses.filter((status) => status !== undefined)
}

/**
 * Logs the versions of members, and what changes about them. An unreached member has the version
 * that it had; its alarms and downgrade do not count, since it may have been replaced.
 */
export class StatusLog {
  readonly #log: Log
  readonly #known = new Map<string, MemberStatus>()
  readonly #failing = new Set<string>()
  #downgradeTo: string | undefined
  #corrupt: string | undefined

  constructor(log: Log) {
    this.#log = log
  }

  note(statuses: readonly MemberStatus[]): void {
    for (const status of statuses) {
      const before = this.#known.get(status.endpoint)
      this.#known.set(status.endpoint, status)
      this.#failing.delete(status.endpoint)
      if (status.version !== before?.version) this.#noteVersion(status, before?.version)
      if (status.isLearner && before?.isLearner !== true) {
        const { endpoint } = status
        this.#log.warn('An etcd member is a learner, which serves no reads and no writes', {
          endpoint,
        })
      }
    }
    if (statuses.length === 0) return
    this.#noteDowngrade(statuses)
    this.#noteCorruption(statuses)
  }

  /** Such as missing permissions; logged once until the member returns a status again. */
  readonly onFailure = (endpoint: string, err: EtcdError): void => {
    if (UNREACHED.has(err.kind) || this.#failing.has(endpoint)) return
    this.#failing.add(endpoint)
    this.#log.warn('Cannot read the status of an etcd member', { endpoint, err })
  }

  #noteVersion({ endpoint, version, dbBytes }: MemberStatus, before: string | undefined): void {
    if (!isGoodEtcdVersion(version)) {
      const needed = '3.5.28, 3.6.9, 3.7.0 or newer is needed'
      this.#log.warn(`This etcd has known consistency bugs; ${needed}`, { endpoint, version })
    } else if (before === undefined) {
      this.#log.info('Connected to etcd', { endpoint, version, dbBytes })
    } else
      this.#log.info('The version of an etcd member has changed', { endpoint, version, before })
  }

  /** A member that does not know of downgrades is of the version that one ends with. */
  #noteDowngrade(statuses: readonly MemberStatus[]): void {
    const found = statuses.find(({ downgradeTo }) => downgradeTo !== undefined)
    if (found?.downgradeTo === this.#downgradeTo) return
    this.#downgradeTo = found?.downgradeTo
    const versions = statuses.map(({ endpoint, version }) => `${endpoint} ${version}`).join(', ')
    if (found === undefined) this.#log.info('The downgrade of etcd is over', { versions })
    else {
      const { downgradeTo: target, storageVersion } = found
      this.#log.warn('etcd is being downgraded', { target, storageVersion, versions })
    }
  }

  /** etcd then refuses writes. The alarm names the member whose data differs. */
  #noteCorruption(statuses: readonly MemberStatus[]): void {
    const errors = statuses.flatMap((status) => status.errors)
    const found = errors.filter((error) => error.includes('CORRUPT')).map(memberIdIn)
    const corrupt = found.length === 0 ? undefined : [...new Set(found)].sort().join(', ')
    if (corrupt === this.#corrupt) return
    this.#corrupt = corrupt
    if (corrupt === undefined) this.#log.info('The corruption alarm of etcd is off')
    else {
      this.#log.error('etcd has found that the data of its members differs: it refuses writes', {
        members: corrupt,
        remedy: 'replace the named members with new ones, then etcdctl alarm disarm',
      })
    }
  }
}

/** Ids of members are hexadecimal wherever etcd's own tools print them. */
function memberIdIn(alarm: string): string {
  const id = /memberID:(\d+)/.exec(alarm)?.[1]
  return id === undefined ? 'unknown' : BigInt(id).toString(16)
}

/** Whether a release such as `3.5.30` or `3.6.9-rc.1` has none of those bugs. */
export function isGoodEtcdVersion(version: string): boolean {
  const [major = Number.NaN, minor = Number.NaN, patch = Number.NaN] = version
    .split(/[.+-]/)
    .map(Number)
  const oldest = OLDEST_GOOD_PATCHES.get(`${major}.${minor}`)
  if (oldest !== undefined) return patch >= oldest
  if (BAD_PRERELEASE.test(version)) return false
  return major > 3 || (major === 3 && minor > 6)
}
