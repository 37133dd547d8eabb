import { coreGroup, eventsGroup } from '../../../src/api/event-groups.ts'
import { EventLister } from '../../../src/registry/read/listing.ts'
import { EventRegistry } from '../../../src/registry/registry.ts'
import type { ReplicaParts, WorldReplica } from '../../worlds/workload/contract.ts'
import type { MakeStorage, StorageInstance } from './storages.ts'

const eventBytesMax = 64 * 1024

/** A storage in this process that can crash and start again without any state. */
export class Replica implements WorldReplica {
  readonly index: number
  readonly #make: () => Promise<StorageInstance>
  readonly #onEnd: (replica: number, incarnation: number) => void
  #incarnation = 0
  #instance: StorageInstance | undefined
  #parts: ReplicaParts | undefined

  constructor(options: {
    readonly index: number
    readonly endpoints: readonly string[]
    readonly make: MakeStorage
    readonly onEnd: (replica: number, incarnation: number) => void
  }) {
    const { index, endpoints, make, onEnd } = options
    this.index = index
    this.#onEnd = onEnd
    // Each replica prefers another member.
    const start = index % endpoints.length
    const own = [...endpoints.slice(start), ...endpoints.slice(0, start)]
    this.#make = () => make(own)
  }

  get incarnation(): number {
    return this.#incarnation
  }

  get parts(): ReplicaParts | undefined {
    return this.#parts
  }

  async start(): Promise<void> {
    const instance = await this.#make()
    const { storage, stats } = instance
    const group = eventsGroup('events.k8s.io')
    const servedVersions = [coreGroup.apiVersion]
    const registry = new EventRegistry({
      storage,
      writes: storage,
      group,
      servedVersions,
      eventBytesMax,
    })
    const lister = new EventLister(storage, registry.names)
    this.#incarnation++
    this.#instance = instance
    this.#parts = { storage, writes: storage, registry, lister, stats }
  }

  after(ms: number, work: () => void): void {
    const incarnation = this.#incarnation
    setTimeout(() => {
      if (this.#parts !== undefined && this.#incarnation === incarnation) work()
    }, ms)
  }

  /** Responses that the crashed instance may still return count as lost. */
  async crash(): Promise<void> {
    this.#end()?.crash()
    await this.start()
  }

  async close(): Promise<void> {
    await this.#end()?.close()
  }

  #end(): StorageInstance | undefined {
    const instance = this.#instance
    this.#instance = undefined
    this.#parts = undefined
    this.#onEnd(this.index, this.#incarnation)
    return instance
  }
}
