/**
 * The sizing model of docs/how-to/size.md: what replicas and etcd need for a load, from measured
 * costs.
 */

/** CPU time in microseconds, unless it says otherwise. */
export interface Costs {
  /** Cores that a replica, or etcd, uses while clients send nothing. */
  readonly idleCores: number
  readonly etcdIdleCores: number
  readonly create: Cost
  /** The cost of a change that another replica wrote. */
  readonly follow: Cost
  readonly etcdCreate: Cost
  /** The cost of an event sent to one watcher. */
  readonly frame: number
  readonly etcdBytesPerEvent: number
}

/**
 * Measured at several rates, in ascending order: writes a second of all replicas, since each of them
 * sees all. The more, the more of them share wake-ups and transactions.
 */
export type Cost = readonly { readonly perSecond: number; readonly micros: number }[]

export interface ClusterLoad {
  readonly createsPerSecond: number
  /** How many watchers, over all replicas, get each event. */
  readonly watchersPerEvent: number
  readonly replicas: number
}

export interface Need {
  /** Cores that each replica needs; the load is spread evenly. */
  readonly replicaCores: number
  /** Cores that the leader of etcd needs. */
  readonly etcdCores: number
}

/** JavaScript runs on one core: the rest is for bursts, and for helper threads. */
const REPLICA_CORES_MAX = 0.6
const REPLICAS_MIN = 2

export function needOf(load: ClusterLoad, costs: Costs): Need {
  const { createsPerSecond, watchersPerEvent, replicas } = load
  const own = createsPerSecond / replicas
  const others = createsPerSecond - own
  const frames = (createsPerSecond * watchersPerEvent) / replicas
  const micros =
    own * costAt(createsPerSecond, costs.create) +
    others * costAt(createsPerSecond, costs.follow) +
    frames * costs.frame
  return {
    replicaCores: costs.idleCores + micros / 1e6,
    etcdCores:
      costs.etcdIdleCores + (createsPerSecond * costAt(createsPerSecond, costs.etcdCreate)) / 1e6,
  }
}

/** The least number, at least two, of which none is busier than it should be. */
export function replicasFor(load: Omit<ClusterLoad, 'replicas'>, costs: Costs): number {
  let replicas = REPLICAS_MIN
  while (needOf({ ...load, replicas }, costs).replicaCores > REPLICA_CORES_MAX) {
    const more = needOf({ ...load, replicas: replicas + 1 }, costs)
    if (more.replicaCores >= needOf({ ...load, replicas }, costs).replicaCores) break
    replicas += 1
  }
  return replicas
}

/** Between two measured rates: linear in the logarithm of the rate. */
export function costAt(perSecond: number, cost: Cost): number {
  const above = cost.findIndex((point) => point.perSecond > perSecond)
  const upper = cost.at(above)
  const lower = cost[above - 1]
  if (upper === undefined) throw new Error('nothing was measured')
  // Below the lowest rate, or above the highest: the nearest.
  if (lower === undefined) return upper.micros
  const part = Math.log(perSecond / lower.perSecond) / Math.log(upper.perSecond / lower.perSecond)
  return lower.micros + part * (upper.micros - lower.micros)
}
