import { EtcdClient } from '../../../../src/etcd/client.ts'
import { pause } from '../../../../src/lib/abort.ts'
import type { Random } from '../../../support/random.ts'
import type { FaultOf } from '../../../worlds/faults.ts'
import type { Replica } from '../replica.ts'
import type { Cluster } from './cluster.ts'
import { effects, type Victims } from './kinds.ts'

const quietMs = { least: 200, most: 2_000 }
const statusTimeoutMs = 1_000

/** Injects one fault after another, and repairs everything after each. */
export class Injector implements Disposable {
  readonly #cluster: Cluster
  readonly #random: Random
  readonly #client: EtcdClient
  readonly #victims: Victims

  constructor(cluster: Cluster, replicas: readonly Replica[], random: Random) {
    this.#cluster = cluster
    this.#random = random
    const { endpoints } = cluster
    this.#client = new EtcdClient({ endpoints, defaultTimeoutMs: statusTimeoutMs })
    this.#victims = { cluster, replicas, random, leader: () => this.#findLeader() }
  }

  /**
   * Returns a description of the fault. Resolves when everything works again and has done so for a
   * moment.
   */
  async inject(name: FaultOf<'chaos'>): Promise<string> {
    let description: string
    try {
      description = await effects[name](this.#victims)
    } finally {
      for (const member of this.#cluster.members) member.resume()
      await this.#cluster.network.heal()
    }
    const brokenAt = performance.now()
    await this.#cluster.untilHealthy()
    const recovered = Math.round(performance.now() - brokenAt)
    await pause(this.#random.between(quietMs.least, quietMs.most))
    return `${name}: ${description}; healthy ${recovered} ms later`
  }

  [Symbol.dispose](): void {
    this.#client.close()
  }

  async #findLeader(): Promise<number> {
    const { members } = this.#cluster
    for (const { endpoint } of members) {
      try {
        const { leader } = await this.#client.status(endpoint)
        const statuses = await Promise.all(members.map((m) => this.#client.status(m.endpoint)))
        const index = statuses.findIndex(({ memberId }) => memberId === leader)
        if (index >= 0) return index
      } catch {
        // Another member may respond.
      }
    }
    return this.#random.below(members.length)
  }
}
