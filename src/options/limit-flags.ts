import type { FlagTable } from './flag.ts'
import { byteQuantity, duration, integer, optionalPath } from './kinds.ts'

/** Limits of concurrency, memory and rates. 0 means no limit. */
export interface LimitOptions {
  readonly maxRequestsInflight: number
  readonly maxMutatingRequestsInflight: number
  readonly maxWatches: number
  readonly maxWatchesPerUser: number
  readonly maxWatchDurationMs: number
  readonly maxEventBytes: number
  readonly maxWriteBytesPerSecond: number
  /** 0 means the limit of the control group, or the memory of the machine without one. */
  readonly memoryLimitBytes: number
  readonly maxClientMemoryMib: number
  readonly maxClientMemoryPerUserMib: number
  readonly maxConnections: number
  readonly maxConnectionsPerUser: number
  readonly stalledResponseTimeoutMs: number
  readonly eventRateLimitConfigFile: string | undefined
}

/** The maximum number of connections; a higher value would not limit anything. */
const inflightMax = 20_000
/** A hundred times what a replica is designed for; 0 removes the limit. */
const watchesMax = 1_000_000
const clientMemoryMibMax = 65_536
/** With less, the program leaves no memory for events. */
export const memoryLimitBytesMin: number = 256 * 1024 * 1024

/** The largest event that fits into one etcd transaction with its framing. */
const eventBytesMax = 1_000_000
const writeBytesMax = 2 ** 40

export const limitFlags: FlagTable<LimitOptions> = {
  maxRequestsInflight: {
    name: 'max-requests-inflight',
    topic: 'Limits',
    kind: integer({ min: 0, max: inflightMax }),
    default: 400,
    help: 'Maximum number of concurrent reads. Users share them fairly: a read above the limit waits in a queue for a while and then gets 429. 0 means no limit.',
  },
  maxMutatingRequestsInflight: {
    name: 'max-mutating-requests-inflight',
    topic: 'Limits',
    kind: integer({ min: 0, max: inflightMax }),
    default: 200,
    help: 'Maximum number of concurrent writes, shared in the same way. 0 means no limit.',
  },
  maxWatches: {
    name: 'max-watches',
    topic: 'Limits',
    kind: integer({ min: 0, max: watchesMax }),
    default: 20_000,
    help: 'Maximum number of open watches of all users together. The default is less where the memory limit is less than about 2.6 GiB; any other value is used as it is. 0 means no limit.',
  },
  maxWatchesPerUser: {
    name: 'max-watches-per-user',
    topic: 'Limits',
    kind: integer({ min: 0, max: watchesMax }),
    default: 5000,
    help: 'Maximum number of open watches of one user, who may also hold at most as many as are still free. The default is at most a quarter of --max-watches. 0 means no limit.',
  },
  maxWatchDurationMs: {
    name: 'max-watch-duration',
    topic: 'Limits',
    kind: duration({ positive: true }),
    default: 3_600_000,
    help: 'Maximum duration of a watch, whatever its timeoutSeconds. A watch with a longer or no timeoutSeconds ends at a random time between half of this and all of it, so that clients do not reconnect all at once.',
  },
  maxEventBytes: {
    name: 'max-event-bytes',
    topic: 'Limits',
    kind: integer({ min: 4096, max: eventBytesMax }),
    default: 128 * 1024,
    help: 'Maximum size of an event, in bytes of JSON, from 4096 to 1000000. A write of a larger event gets 413; a larger event of a mirrored cluster is stored without its annotations and the end of its note.',
  },
  maxWriteBytesPerSecond: {
    name: 'max-write-bytes-per-second',
    topic: 'Limits',
    kind: integer({ min: 0, max: writeBytesMax }),
    default: 1024 * 1024,
    help: 'Bytes of events that one user may write per second; all users together may write eight times as many in one namespace, and so may the mirror of a cluster, which waits instead. Bursts of up to 256 seconds of this rate are allowed, or half of the memory for events if that is less. Every change counts the whole event. Writes above the limit get 429. The limit is lower while etcd is more than half full, and zero when it is 80% full. 0 means no limit.',
  },
  memoryLimitBytes: {
    name: 'memory-limit',
    topic: 'Limits',
    kind: byteQuantity({ min: memoryLimitBytesMin, orZero: true }),
    default: 0,
    help: 'Memory that the process may use, such as 512Mi or 2Gi, at least 256Mi. It determines the size of caches, recent changes and the memory held for clients, which reach their maximum at 1.5 GiB. As the memory for events fills up, users, namespaces and mirrored clusters with many bytes of events may store less, and a replica whose events do not fit reports that and is not ready until enough have expired. With --history, a part of it is for the processes that write and read history. The limit of the control group (of the container) and the memory of the machine apply if they are lower; 0 means that only they apply.',
  },
  maxClientMemoryMib: {
    name: 'max-client-memory',
    topic: 'Limits',
    kind: integer({ min: 32, max: clientMemoryMibMax }),
    default: 192,
    help: 'Memory in MiB held for clients, at least 32: headers, bodies, selectors, queued requests and responses that are not sent yet. Above it, requests of users that hold much of it get 429. The default is less where --memory-limit is less than 1.5 GiB; any other value is used as it is. Unauthenticated clients together may hold at most a twelfth of it, and not more than 16 MiB; above that, the connection that holds most is closed.',
  },
  maxClientMemoryPerUserMib: {
    name: 'max-client-memory-per-user',
    topic: 'Limits',
    kind: integer({ min: 8, max: clientMemoryMibMax }),
    default: 64,
    help: 'Memory in MiB held in the same way for one user, at least 8. Requests above it get 429. The default is at most a third of the memory for all clients.',
  },
  maxConnections: {
    name: 'max-connections',
    topic: 'Limits',
    kind: integer({ min: 1, max: 20_000 }),
    default: 20_000,
    help: 'Maximum number of connections on which a user has authenticated, at least 1. The default is less where the memory limit is less than about 9.3 GiB; any other value is used as it is.',
  },
  maxConnectionsPerUser: {
    name: 'max-connections-per-user',
    topic: 'Limits',
    kind: integer({ min: 1, max: 20_000 }),
    default: 2500,
    help: 'Maximum number of connections of one user, at least 1. A user may also hold at most as many as are still free of --max-connections. A connection counts for the first user that sends a request on it. Above the limit, that request gets 429 and the connection is closed.',
  },
  stalledResponseTimeoutMs: {
    name: 'stalled-response-timeout',
    topic: 'Limits',
    kind: duration({ positive: true }),
    default: 10_000,
    help: 'How long a client may read nothing of a response or watch that has data to send before it is aborted. A slow reader is not aborted: each 64 KiB that it reads restarts the timer.',
  },
  eventRateLimitConfigFile: {
    name: 'event-rate-limit-config-file',
    topic: 'Limits',
    kind: optionalPath,
    default: undefined,
    help: 'YAML file with the rate limits of event writes: per server, per namespace, per user, or per source and object. A Configuration of eventratelimit.admission.k8s.io/v1alpha1. Checked for changes once a second. Without it, only bytes are limited.',
  },
}
