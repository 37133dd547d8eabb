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
 * Stored events do not say who wrote them. A user is charged for what this replica stored for it
 * during the last lifetime of events, in steps of a quarter, so a write counts for at least as long
 * as its event lives. What namespaces and clusters hold is known, whichever replica wrote it.
 */
import type { StoredSizes } from '../../storage/stored-sizes.ts'
import { bounded, USERS_PER_GROUP } from './event-limits.ts'

/** With it, one user alone can take half of a budget. */
export const USER_WEIGHT = 2
export const GROUP_WEIGHT: number = USER_WEIGHT * USERS_PER_GROUP
/** The writes of a tenant are counted in as many steps per lifetime. */
const STEPS_PER_LIFETIME = 4
const LIFETIME_MS_MIN = 10_000
/** Tenants beyond it are forgotten, the least recent writer first. */
const TENANTS_MAX = 8192
/** Memory has every write after one such time, at the latest after two. */
const IN_FLIGHT_MS = 1_000

export type ResourceName = 'etcd' | 'memory'

/** Something that events take space in. */
export interface StoredBytesResource {
  readonly name: ResourceName
  /** Undefined while it is not known: then it limits nothing. */
  readonly budgetBytes: () => number | undefined
  /** Excluding writes in flight, unless `countsWrites`. */
  readonly usedBytes: () => number
  /** Whether `usedBytes` includes writes as soon as they are admitted. */
  readonly countsWrites?: boolean | undefined
}

export interface StoredBytesOptions {
  readonly resources: readonly StoredBytesResource[]
  /** How long events live. */
  readonly lifetimeMs: () => number
  /** What namespaces and clusters hold. */
  readonly sizes?: Pick<StoredSizes, 'of'> | undefined
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

interface Tenant {
  readonly type: TenantType
  readonly weight: number
  readonly writes: RecentBytes
  /** What it holds for certain. */
  readonly knownBytes: number
}

export class StoredBytes {
  readonly #options: StoredBytesOptions
  /** The least recent writer is the first. */
  readonly #writes = new Map<string, RecentBytes>()
  readonly #inFlight = new RecentBytes(2)

  constructor(options: StoredBytesOptions) {
    this.#options = options
  }

  /** The largest burst that one user can store into an empty budget. */
  get userBytesMax(): number {
    const budgets = this.#options.resources.map(({ budgetBytes }) => budgetBytes())
    return Math.min(...budgets.map((bytes = Number.POSITIVE_INFINITY) => bytes)) / 2
  }

  /** Whether the tenants may hold so many bytes more. Does not charge them. */
  exceeded(storing: Storing, bytes: number): ShareExceeded | undefined {
    // What makes nothing larger needs no share.
    if (bytes <= 0) return undefined
    const now = this.#options.now()
    let tenants: readonly Tenant[] | undefined
    for (const { name: resource, budgetBytes, usedBytes, countsWrites } of this.#options
      .resources) {
      const budget = budgetBytes()
      if (budget === undefined) continue
      const inFlight = countsWrites === true ? 0 : this.#inFlight.sum(now, IN_FLIGHT_MS)
      const used = usedBytes() + inFlight
      const free = Math.max(0, budget - used - bytes)
      const share = (free * free) / budget
      // Nobody can hold more than all.
      if (used + bytes <= USER_WEIGHT * share) continue
      tenants ??= this.#tenants(storing, now)
      for (const { type, weight, writes, knownBytes } of tenants) {
        const held = Math.min(used, Math.max(knownBytes, writes.sum(now, this.#stepMs)))
        if (held + bytes <= weight * share) continue
        const waitMs = writes.nextStepMs(now, this.#stepMs)
        return { type, resource, isExhausted: free === 0, waitMs }
      }
    }
    return undefined
  }

  /** The write is made: charges it. */
  store(storing: Storing, bytes: number): void {
    if (bytes <= 0) return
    const now = this.#options.now()
    this.#inFlight.add(bytes, now, IN_FLIGHT_MS)
    for (const { writes } of this.#tenants(storing, now)) writes.add(bytes, now, this.#stepMs)
  }

  #tenants(storing: Storing, now: number): readonly Tenant[] {
    const { cluster } = storing
    if (storing.account === undefined) {
      return [this.#tenant('Cluster', cluster, { weight: GROUP_WEIGHT, cluster }, now)]
    }
    const { account, namespace } = storing
    const inNamespace = { weight: GROUP_WEIGHT, cluster, namespace }
    return [
      this.#tenant('User', account, { weight: USER_WEIGHT }, now),
      this.#tenant('Namespace', `${cluster}/${namespace}`, inNamespace, now),
    ]
  }

  #tenant(
    type: TenantType,
    name: string,
    {
      weight,
      cluster,
      namespace,
    }: {
      readonly weight: number
      readonly cluster?: string
      readonly namespace?: string
    },
    now: number,
  ): Tenant {
    const size = cluster === undefined ? undefined : this.#options.sizes?.of(cluster, namespace)
    const writes = this.#writesOf(bounded(`${type} ${name}`), now)
    return { type, weight, writes, knownBytes: size?.bytes ?? 0 }
  }

  /** Moves the entry to the end, as that of the most recent writer. */
  #writesOf(key: string, now: number): RecentBytes {
    const known = this.#writes.get(key)
    if (known !== undefined) this.#writes.delete(key)
    const writes = known ?? new RecentBytes(STEPS_PER_LIFETIME + 1, now)
    this.#writes.set(key, writes)
    if (this.#writes.size > TENANTS_MAX) {
      const [oldest = ''] = this.#writes.keys()
      this.#writes.delete(oldest)
    }
    return writes
  }

  get #stepMs(): number {
    return Math.max(LIFETIME_MS_MIN, this.#options.lifetimeMs()) / STEPS_PER_LIFETIME
  }
}

/** Bytes of the last steps of time, the current one included. */
class RecentBytes {
  readonly #steps: number[]
  /** When the current step began. */
  #begunAt: number

  constructor(steps: number, now = 0) {
    this.#steps = new Array<number>(steps).fill(0)
    this.#begunAt = now
  }

  sum(now: number, stepMs: number): number {
    this.#advance(now, stepMs)
    let sum = 0
    for (let at = 0; at < this.#steps.length; at++) sum += this.#steps[at] ?? 0
    return sum
  }

  add(bytes: number, now: number, stepMs: number): void {
    this.#advance(now, stepMs)
    this.#steps[0] = (this.#steps[0] ?? 0) + bytes
  }

  /** Until the bytes of a step may be forgotten. */
  nextStepMs(now: number, stepMs: number): number {
    return Math.max(0, this.#begunAt + stepMs - now)
  }

  #advance(now: number, stepMs: number): void {
    const elapsed = Math.floor((now - this.#begunAt) / stepMs)
    if (elapsed <= 0) return
    const { length } = this.#steps
    for (let step = Math.min(elapsed, length); step > 0; step--) {
      this.#steps.pop()
      this.#steps.unshift(0)
    }
    this.#begunAt += elapsed * stepMs
  }
}
