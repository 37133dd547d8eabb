import type { CachedStorage } from '../cache/cached-storage.ts'
import type { ClustersSource } from '../clusters/clusters-file.ts'
import { OriginClient } from '../clusters/origin-client.ts'
import type { EtcdClient } from '../etcd/client.ts'
import type { Log } from '../lib/log/log.ts'
import type { Lane } from '../lib/run-queue.ts'
import { HttpOrigin } from '../mirror/http-origin.ts'
import { MirrorManager } from '../mirror/mirror-manager.ts'
import type { WriteAdmission } from '../registry/admission/write-admission.ts'
import type { Retention } from '../retention/retention.ts'
import type { CountedWrites } from '../storage/counted-writes.ts'
import { releaseVersion } from './build-info.ts'

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
  /** Comparing the lists of origins with the stored events uses its time. */
  readonly lane: Lane
  readonly log: Log
}

/** The mirrors of the clusters in the clusters file. */
export function createMirrors(parts: MirrorParts): MirrorManager {
  const { client, cached, writes, prefix, replica, clusters, retention, lane, log } = parts
  return new MirrorManager({
    client,
    storage: {
      list: (scope, options) => cached.list(scope, { ...options, lane }),
      update: (key, change, options) => writes.update(key, change, options),
    },
    recall: (key) => cached.recall(key),
    prefix,
    replica,
    clusters,
    lifetimeOf: (event) => retention.policy.lifetimeOf(event),
    eventBytesMax: parts.eventBytesMax,
    admission: parts.admission,
    originFor: ({ name, kubeconfig }) => {
      // The clusters file requires it for a mirrored cluster.
      if (kubeconfig === undefined) throw new Error(`cluster ${name} has no kubeconfig`)
      return new HttpOrigin({
        client: new OriginClient(kubeconfig, { userAgent: `tidings/${releaseVersion()}` }),
      })
    },
    history: {
      verified: () => cached.verified,
      verify: () => cached.verify(client.newestConnection),
    },
    log,
  })
}
