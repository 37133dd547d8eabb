/** The mirrored cluster of a world: its origin, the writers there, and the checks. */
import type { ClustersSource } from '../../../src/clusters/clusters-file.ts'
import type { Random } from '../../support/random.ts'
import type { ClientWorld } from '../../worlds/workload/contract.ts'
import type { Workload } from '../../worlds/workload/workload.ts'
import type { Scheduler } from '../kernel/scheduler.ts'
import { MirrorChecks } from './mirror-checks.ts'
import { OriginModel } from './origin-model.ts'
import { OriginServer } from './origin-server.ts'
import { OriginWriters } from './origin-writers.ts'
import { type MirrorSetting, mirroredCluster } from './setting.ts'

export interface MirrorSideOptions {
  readonly world: ClientWorld
  readonly setting: MirrorSetting
  readonly replicas: number
  readonly scheduler: Scheduler
  readonly random: Random
}

export class MirrorSide {
  readonly server: OriginServer
  readonly checks: MirrorChecks
  readonly clusters: ClustersSource
  readonly #options: MirrorSideOptions
  /** The version of the origin when the storm began. */
  backup: number | undefined
  /** False when the origin was restored since the storm began, or the mirror does not know yet. */
  mayRestoreEtcd = true

  constructor(options: MirrorSideOptions) {
    const { world, setting, scheduler, random, replicas } = options
    const { keys, hasBookmarks, namespaces, deletes, originTtlMs } = setting
    const model = new OriginModel(keys)
    this.#options = options
    this.server = new OriginServer({ model, scheduler, random, replicas, hasBookmarks })
    this.checks = new MirrorChecks(world, this.server, setting)
    const config = {
      name: mirroredCluster,
      kubeconfig: () => {
        return {
          url: new URL('https://origin'),
          ca: undefined,
          serverName: undefined,
          clientCertificate: undefined,
          token: undefined,
          fingerprint: '',
        }
      },
      mirror: { namespaces, deletes, originTtlMs },
      authorization: 'rbac',
    } as const
    this.clusters = {
      clusters: new Map([[mirroredCluster, config]]),
      certificates: '',
      onChange: () => {},
    }
  }

  startWriters(keeps: ((operation: number) => boolean) | undefined): Workload {
    const { world, setting } = this.#options
    const { server, checks } = this
    checks.start()
    return new OriginWriters({ world, server, setting, checks, keeps })
  }

  /** A storm begins. */
  beginStorm(): void {
    this.backup = this.server.model.version
    this.server.watchChunk = this.#options.setting.watchChunk
    this.mayRestoreEtcd = this.checks.isOriginKnown
  }

  /** False when the backup is too new. */
  restore(version: number): boolean {
    if (version >= this.checks.backupLimit) return false
    this.mayRestoreEtcd = false
    this.checks.restoreOrigin(() => this.server.restore(version))
    return true
  }
}
