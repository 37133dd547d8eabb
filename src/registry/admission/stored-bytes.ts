/**
 * Shares the space for stored events among tenants: users, namespaces and mirrored clusters. Events
 * take space in etcd and in the memory of every replica, and each of these has a budget.
 *
 * A tenant may hold, with the write that it asks for, at most
 *
 *     weight × free² / budget
 *
 * where `free` is what the write would leave. A single user (weight 2) can therefore take half of a
 * budget, and everybody may hold less the fuller it gets: those that hold most are refused first.
 *
 * Guarantee: let N tenants store bytes in any order and in any amounts, each with a weight of at most
 * W. Then free > budget / (W·N + 1), so the budget is never exhausted, and a tenant of weight w that
 * holds at most w · budget / (W·N + 1)² is never refused, whatever the others do.
 *
 * Proof: sort tenants by their last admitted write, and let f be the free part of the budget after
 * the k-th of them. It held at most W·f², so the free part before it was at most f + W·f². By
 * induction, that is at least 1/(W·(k-1) + 1), which f = 1/(W·k + 1) would not reach.
 *
 * Stored events do not say who wrote them. A user is charged for what this replica stored for it, for
 * as long as the event lives, but for no more than an hour: what it wrote earlier counts through the
 * namespace. What namespaces and clusters hold is measured, whichever replica wrote it.
 */
import type { StoredSizes } from '../../storage/stored-sizes.ts'
import { bounded, USERS_PER_GROUP } from './event-limits.ts'

/** Lets one user alone take half of a budget. */
export const USER_WEIGHT = 2
export const GROUP_WEIGHT: number = USER_WEIGHT * USERS_PER_GROUP
/** Charges end at one of this many points per lifetime, so that a tenant has few entries. */
const STEPS_PER_LIFETIME = 4
/** Bounds of the time for which a write is charged. */
const CHARGED_MS_MIN = 10_000
const CHARGED_MS_MAX = 3_600_000
/** Beyond this, the tenant that wrote least recently is evicted. */
const TENANTS_MAX = 8192
/** While memory follows the store, it contains a write after one to two of these intervals. */
const IN_FLIGHT_MS = 1_000
/** While memory does not follow the store, writes count as in flight for at most this long. */
const SILENT_MS_MAX = 30_000
/** Retry delay when it is unknown when a tenant will hold less. */
const WAIT_MS = 5_000

export type ResourceName = 'etcd' | 'memory'

/** Space that events take. */
export interface StoredBytesResource {
  readonly name: ResourceName
  /** Undefined while unknown: then the resource limits nothing. */
  readonly budgetBytes: () => number | undefined
  /** Excludes writes in flight, unless `countsWrites`. */
  readonly usedBytes: () => number
  /** Whether `usedBytes` includes a write as soon as it is made. */
  readonly countsWrites?: boolean | undefined
}

export interface StoredBytesOptions {
  readonly resources: readonly StoredBytesResource[]
  /** The stored size of namespaces and clusters, excluding writes in flight. */
  readonly sizes?: Pick<StoredSizes, 'of'> | undefined
  /** How long ago `usedBytes` and `sizes` were last known to follow the store. Default 0. */
  readonly silentMs?: (() => number) | undefined
  /** Monotonic milliseconds. */
  readonly now: () => number
}

export type TenantType = 'User' | 'Namespace' | 'Cluster'

/** Who stores an event: an account in a namespace of a cluster, or the mirror of a cluster. */
export type Storing =
  | { readonly cluster: string; readonly account: string; readonly namespace: string }
  | { readonly cluster: string; readonly account?: undefined }

/** A tenant holds its share of a resource. */
export interface ShareExceeded {
  readonly type: TenantType
  readonly resource: ResourceName
  /** Whether nothing at all is free: no tenant may store anything. */
  readonly isExhausted: boolean
  /** The earliest time at which the tenant may hold less. */
  readonly waitMs: number
}

/** Must be called if the write was not made. */
export type Refund = () => void

interface Tenant {
  readonly type: TenantType
  readonly weight: number
  readonly writes: TenantWrites
  /** The group whose stored size is measured; undefined for a user. */
  readonly group: { readonly cluster: string; readonly namespace: string | undefined } | undefined
}

/** Bytes that this replica wrote for a tenant. */
class TenantWrites {
  readonly charged = new EndingBytes()
  readonly inFlight = new EndingBytes()
}

interface Times {
  readonly now: number
  /** Writes in flight until this time are contained in the measured sizes. */
  readonly seen: number
}

export class StoredBytes {
  readonly #options: StoredBytesOptions
  /** Ordered by the last write, least recent first. */
  readonly #writes = new Map<string, TenantWrites>()
  readonly #inFlight = new EndingBytes()

  constructor(options: StoredBytesOptions) {
    this.#options = options
  }

  /** Returns the share that the write would exceed, if any. Charges nothing. */
  exceeded(storing: Storing, bytes: number): ShareExceeded | undefined {
    // A write that does not grow an event needs no share.
    if (bytes <= 0) return undefined
    const times = this.#times()
    let tenants: readonly Tenant[] | undefined
    for (const resource of this.#options.resources) {
      const budget = resource.budgetBytes()
      if (budget === undefined) continue
      const inFlight = resource.countsWrites === true ? 0 : this.#inFlight.sum(times.seen)
      const used = resource.usedBytes() + inFlight
      const free = Math.max(0, budget - used - bytes)
      const share = budget > 0 ? (free * free) / budget : 0
      // No tenant holds more than everything, so none can exceed its share.
      if (used + bytes <= USER_WEIGHT * share) continue
      tenants ??= this.#tenants(storing)
      const tenant = tenants.find(
        (one) => Math.min(used, this.#heldBy(one, times)) + bytes > one.weight * share,
      )
      if (tenant === undefined) continue
      const { type, writes } = tenant
      const waitMs = writes.charged.nextEndMs(times.now) ?? WAIT_MS
      return { type, resource: resource.name, isExhausted: used >= budget, waitMs }
    }
    return undefined
  }

  /** Charges a write that is about to be made; `lifetimeMs` is that of its event. */
  store(storing: Storing, bytes: number, lifetimeMs: number): Refund {
    if (bytes <= 0) return () => {}
    const { now, seen } = this.#times()
    const chargedMs = Math.min(CHARGED_MS_MAX, Math.max(CHARGED_MS_MIN, lifetimeMs))
    const stepMs = chargedMs / STEPS_PER_LIFETIME
    const chargedUntil = Math.ceil((now + chargedMs) / stepMs) * stepMs
    const seenUntil = Math.ceil(now / IN_FLIGHT_MS + 1) * IN_FLIGHT_MS
    const tenants = this.#tenants(storing)
    const charge = (signed: number): void => {
      this.#inFlight.add(signed, seenUntil, seen)
      for (const { type, writes } of tenants) {
        writes.charged.add(signed, chargedUntil, now)
        // The size of a user's events is not measured.
        if (type !== 'User') writes.inFlight.add(signed, seenUntil, seen)
      }
    }
    charge(bytes)
    return () => charge(-bytes)
  }

  #times(): Times {
    const now = this.#options.now()
    return { now, seen: now - Math.min(SILENT_MS_MAX, this.#options.silentMs?.() ?? 0) }
  }

  #tenants(storing: Storing): readonly Tenant[] {
    const { cluster } = storing
    if (storing.account === undefined) return [this.#group('Cluster', cluster, undefined)]
    const { account, namespace } = storing
    const writes = this.#writesOf(`User ${account}`)
    return [
      { type: 'User', weight: USER_WEIGHT, writes, group: undefined },
      this.#group('Namespace', cluster, namespace),
    ]
  }

  #group(type: TenantType, cluster: string, namespace: string | undefined): Tenant {
    const name = namespace === undefined ? cluster : `${cluster}/${namespace}`
    const writes = this.#writesOf(`${type} ${name}`)
    return { type, weight: GROUP_WEIGHT, writes, group: { cluster, namespace } }
  }

  /** Measures only here: charging a write needs no measurement. */
  #heldBy({ writes, group }: Tenant, { now, seen }: Times): number {
    const measured = group && this.#options.sizes?.of(group.cluster, group.namespace)
    if (measured === undefined) return writes.charged.sum(now)
    return measured.bytes + writes.inFlight.sum(seen)
  }

  /** Moves the entry to the end of the map, as the most recent writer. */
  #writesOf(name: string): TenantWrites {
    const key = bounded(name)
    const known = this.#writes.get(key)
    if (known !== undefined) this.#writes.delete(key)
    const writes = known ?? new TenantWrites()
    this.#writes.set(key, writes)
    if (this.#writes.size > TENANTS_MAX) {
      const [oldest = ''] = this.#writes.keys()
      this.#writes.delete(oldest)
    }
    return writes
  }
}

/** A sum of bytes that each count until their end time. Bytes with the same end share an entry. */
class EndingBytes {
  readonly #byEnd = new Map<number, number>()
  #sum = 0
  #firstEnd = Number.POSITIVE_INFINITY

  sum(now: number): number {
    if (now >= this.#firstEnd) this.#drop(now)
    return this.#sum
  }

  /** Negative bytes take back bytes that were added with the same end, if those still count. */
  add(bytes: number, end: number, now: number): void {
    if (now >= this.#firstEnd) this.#drop(now)
    const before = this.#byEnd.get(end)
    if (before === undefined && bytes < 0) return
    this.#byEnd.set(end, (before ?? 0) + bytes)
    this.#sum += bytes
    this.#firstEnd = Math.min(this.#firstEnd, end)
  }

  /** Milliseconds until the first bytes stop counting; undefined if there are none. */
  nextEndMs(now: number): number | undefined {
    return this.#byEnd.size === 0 ? undefined : Math.max(0, this.#firstEnd - now)
  }

  #drop(now: number): void {
    this.#firstEnd = Number.POSITIVE_INFINITY
    for (const [end, bytes] of this.#byEnd) {
      if (end > now) this.#firstEnd = Math.min(this.#firstEnd, end)
      else {
        this.#byEnd.delete(end)
        this.#sum -= bytes
      }
    }
  }
}
