import type { CachedStorage } from '../cache/cached-storage.ts'
import type { ClusterConfig, ClustersSource } from '../clusters/clusters-file.ts'
import { OriginClient, type OriginClientOptions } from '../clusters/origin-client.ts'
import type { EtcdClient } from '../etcd/client.ts'
import type { Log } from '../lib/log/log.ts'
import type { Lane } from '../lib/run-queue.ts'
import { HttpOrigin } from '../mirror/http-origin.ts'
import { HttpOwners } from '../mirror/http-owners.ts'
import { MirrorManager } from '../mirror/mirror-manager.ts'
import { SharedStreamBytes } from '../mirror/stream-bytes.ts'
import type { WriteAdmission } from '../registry/admission/write-admission.ts'
import type { Retention } from '../retention/retention.ts'
import type { CountedWrites } from '../storage/counted-writes.ts'
import { releaseVersion } from './build-info.ts'

/** Three watches for each of 100 namespaces, and lists. */
const OWNERS_SOCKETS_MAX = 310

/** The part of the memory limit that pages and writes of mirrors may take. */
const MEMORY_PART = 1 / 32

interface MirrorParts {
  readonly client: EtcdClient
  readonly cached: CachedStorage
  readonly writes: CountedWrites
  readonly prefix: string
  readonly replica: string
  readonly clusters: ClustersSource
  readonly retention: Pick<Retention, 'policy'>
  readonly eventBytesMax: number
  readonly admission: WriteAdmission | undefined
  /** Undefined: mirrors hold as much as they can use. */
  readonly memoryLimitBytes: number | undefined
  /** Comparing the lists of origins with the stored events uses its time. */
  readonly lane: Lane
  readonly log: Log
}

/** The mirrors of the clusters in the clusters file. */
export function createMirrors(parts: MirrorParts): MirrorManager {
  const { client, cached, writes, prefix, replica, clusters, retention, lane, log } = parts
  const { memoryLimitBytes = Number.POSITIVE_INFINITY } = parts
  const streamBytes = new SharedStreamBytes(memoryLimitBytes * MEMORY_PART, clusters)
  return new MirrorManager({
    client,
    storage: {
      list: (scope, options) => cached.list(scope, { ...options, lane }),
      update: (key, change, options) => writes.update(key, change, options),
    },
    recall: (key) => cached.recall(key),
    marksOf: cached.marksOf,
    prefix,
    replica,
    clusters,
    lifetimeOf: (event) => retention.policy.lifetimeOf(event),
    eventBytesMax: parts.eventBytesMax,
    admission: parts.admission,
    originFor: (config) =>
      new HttpOrigin({ client: clientFor(config), pageBytesMax: () => streamBytes.page }),
    owners: {
      known: cached.owners,
      // Events do not wait for connections that owners use.
      originFor: (config) =>
        new HttpOwners({
          client: clientFor(config, { socketsMax: OWNERS_SOCKETS_MAX }),
          pageBytesMax: () => streamBytes.page,
        }),
    },
    windowBytesMax: () => streamBytes.window,
    history: {
      verified: () => cached.verified,
      verify: () => cached.verify(client.newestConnection),
    },
    log,
  })
}

function clientFor(
  { name, kubeconfig }: ClusterConfig,
  options: OriginClientOptions = {},
): OriginClient {
  // The clusters file requires it for a mirrored cluster.
  if (kubeconfig === undefined) throw new Error(`cluster ${name} has no kubeconfig`)
  return new OriginClient(kubeconfig, { userAgent: `tidings/${releaseVersion()}`, ...options })
}
