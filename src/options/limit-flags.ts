import type { FlagTable } from './flag.ts'
import { duration, integer, optionalPath } from './kinds.ts'

/** How much may be under way at once, and how fast events may come. 0 means no limit. */
export interface LimitOptions {
  readonly maxRequestsInflight: number
  readonly maxMutatingRequestsInflight: number
  readonly maxWatches: number
  readonly maxWatchesPerUser: number
  readonly maxWatchDurationMs: number
  readonly maxEventBytes: number
  readonly maxWriteBytesPerSecond: number
  readonly maxClientMemoryMib: number
  readonly maxClientMemoryPerUserMib: number
  readonly maxConnectionsPerUser: number
  readonly stalledResponseTimeoutMs: number
  readonly eventRateLimitConfigFile: string | undefined
}

/** As many as there may be connections: more would be no limit at all. */
const inflightMax = 20_000
/** A hundred times what a replica is built for: whoever wants more wants no limit. */
const watchesMax = 1_000_000
const clientMemoryMibMax = 65_536

/** What fits into one transaction with etcd, beside its framing. */
const eventBytesMax = 1_000_000
const writeBytesMax = 2 ** 40

export const limitFlags: FlagTable<LimitOptions> = {
  maxRequestsInflight: {
    name: 'max-requests-inflight',
    topic: 'Limits',
    kind: integer({ min: 0, max: inflightMax }),
    default: 400,
    help: 'Reads under way at once. Users share them fairly; one that finds no place waits for a while and is then answered with 429. 0 means no limit.',
  },
  maxMutatingRequestsInflight: {
    name: 'max-mutating-requests-inflight',
    topic: 'Limits',
    kind: integer({ min: 0, max: inflightMax }),
    default: 200,
    help: 'Writes under way at once, shared in the same way. 0 means no limit.',
  },
  maxWatches: {
    name: 'max-watches',
    topic: 'Limits',
    kind: integer({ min: 0, max: watchesMax }),
    default: 20_000,
    help: 'Watches under way at once, of all users together. 0 means no limit.',
  },
  maxWatchesPerUser: {
    name: 'max-watches-per-user',
    topic: 'Limits',
    kind: integer({ min: 0, max: watchesMax }),
    default: 5000,
    help: 'Watches under way at once of any one user. 0 means no limit.',
  },
  maxWatchDurationMs: {
    name: 'max-watch-duration',
    topic: 'Limits',
    kind: duration({ positive: true }),
    default: 3_600_000,
    help: 'How long a watch may go on, whatever its timeoutSeconds says. One that asks for longer, or does not say, ends after between half of this and all of it, so that not all come back at once.',
  },
  maxEventBytes: {
    name: 'max-event-bytes',
    topic: 'Limits',
    kind: integer({ min: 4096, max: eventBytesMax }),
    default: 128 * 1024,
    help: 'The largest event that is stored, in bytes of JSON, from 4096 to 1000000. A write that would make a larger one is answered with 413.',
  },
  maxWriteBytesPerSecond: {
    name: 'max-write-bytes-per-second',
    topic: 'Limits',
    kind: integer({ min: 0, max: writeBytesMax }),
    default: 1024 * 1024,
    help: 'Bytes of events that any one user may write in a second, and all users together in any one namespace eight times as many; after a quiet time, those of 256 seconds at once. Every change counts the whole event. More is answered with 429. Less is allowed while etcd is more than half full, and nothing when it is 80% full. 0 means no limit.',
  },
  maxClientMemoryMib: {
    name: 'max-client-memory',
    topic: 'Limits',
    kind: integer({ min: 32, max: clientMemoryMibMax }),
    default: 192,
    help: 'Memory in MiB held for clients, at least 32: headers, bodies, selectors, waiting requests and responses that are not sent yet. When it is reached, users that hold much of it are answered with 429. Clients that have not shown who they are get 16 MiB of it at most, which are taken from the connection that holds most.',
  },
  maxClientMemoryPerUserMib: {
    name: 'max-client-memory-per-user',
    topic: 'Limits',
    kind: integer({ min: 8, max: clientMemoryMibMax }),
    default: 64,
    help: 'Memory in MiB held in the same way for any one user, who is answered with 429 beyond it.',
  },
  maxConnectionsPerUser: {
    name: 'max-connections-per-user',
    topic: 'Limits',
    kind: integer({ min: 1, max: 20_000 }),
    default: 2500,
    help: 'Connections of one user, at least 1; a connection counts for the first user who sends a request on it. On one too many, that request is answered with 429 and the connection is closed.',
  },
  stalledResponseTimeoutMs: {
    name: 'stalled-response-timeout',
    topic: 'Limits',
    kind: duration({ positive: true }),
    default: 10_000,
    help: 'How long a client may take nothing of a response, or of the changes of a watch, before that is cut off. A slow reader is not cut: each 64 KiB that it takes start the time anew.',
  },
  eventRateLimitConfigFile: {
    name: 'event-rate-limit-config-file',
    topic: 'Limits',
    kind: optionalPath,
    default: undefined,
    help: 'YAML file that says how fast events may be written: on this server, in a namespace, by a user, or by one source about one object. A Configuration of eventratelimit.admission.k8s.io/v1alpha1. Looked at once a second. Without it only bytes are limited.',
  },
}
