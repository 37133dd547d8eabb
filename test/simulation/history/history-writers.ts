/** The clients of a world with an archive: events that are observed again and again, and then expire. */
import type { StoredEvent } from '../../../src/storage/storage.ts'
import { Random } from '../../support/random.ts'
import type { ClientWorld, ReplicaParts } from '../../worlds/workload/contract.ts'
import { keyOf } from '../../worlds/workload/key-space.ts'
import type { Workload } from '../../worlds/workload/workload.ts'
import type { HistoryChecks } from './history-checks.ts'
import type { HistorySetting } from './setting.ts'

const namespaces = ['alpha', 'beta', 'gamma'] as const
/** Events that were created last, which are observed again. */
const recentMax = 60

export interface HistoryWritersOptions {
  readonly world: ClientWorld
  readonly setting: HistorySetting
  readonly operationsPerSecond: number
  /** The clock of the clients, which is right. */
  readonly wallMs: () => number
  readonly checks: Pick<HistoryChecks, 'clientDeletes' | 'outcomes'>
  readonly keeps: ((operation: number) => boolean) | undefined
}

export class HistoryWriters implements Workload {
  readonly #options: HistoryWritersOptions
  readonly #arrivals: Random
  readonly #seed: number
  readonly #recent: string[] = []
  #operations = 0
  #requests = 0
  #isStopped = false

  constructor(options: HistoryWritersOptions) {
    this.#options = options
    this.#arrivals = options.world.random()
    this.#seed = this.#arrivals.below(2 ** 32)
    options.world.after(0, this.#arrive)
  }

  get requests(): number {
    return this.#requests
  }

  get operations(): number {
    return this.#operations
  }

  get outcomes(): ReadonlyMap<string, number> {
    return this.#options.checks.outcomes
  }

  stop(): void {
    this.#isStopped = true
  }

  readonly #arrive = (): void => {
    if (this.#isStopped) return
    const { world, operationsPerSecond, keeps } = this.#options
    const everyMs = 1_000 / operationsPerSecond
    world.after(-Math.log(1 - this.#arrivals.next()) * everyMs, this.#arrive)
    const number = ++this.#operations
    if (keeps?.(number) === false) return
    const random = new Random(Math.imul(this.#seed ^ number, 0x9e3779b1))
    const replica = world.replicas[random.below(world.replicas.length)]
    if (replica?.parts === undefined) return
    this.#requests++
    replica.after(random.next() * 5, () => {
      const { parts } = replica
      // Whether it succeeds is seen from the commits.
      if (parts !== undefined) this.#write(parts, number, random).catch(() => {})
    })
  }

  async #write(parts: ReplicaParts, number: number, random: Random): Promise<void> {
    const { writes } = parts
    const kind = random.next()
    if (kind < 0.3) {
      const path = `${random.pick(namespaces)}/new-${number}`
      this.#recent[random.below(recentMax)] = path
      await writes.create(keyOf(path), this.#body(path, number))
      return
    }
    const path = this.#known(random)
    if (kind < 0.96) {
      const raise = random.chance(0.7) ? 1 : random.below(5)
      await writes.update(keyOf(path), (current) =>
        current === undefined ? this.#body(path, number) : this.#raised(current, raise),
      )
    } else {
      const { clientDeletes } = this.#options.checks
      await writes.delete(keyOf(path), ({ fields }) => void clientDeletes.add(fields.uid))
    }
  }

  #known(random: Random): string {
    const { hotNames } = this.#options.setting
    const recent = this.#recent[random.below(recentMax)]
    if (recent !== undefined && random.chance(0.4)) return recent
    return `${random.pick(namespaces)}/hot-${random.below(hotNames)}`
  }

  #body(path: string, number: number): Buffer {
    const { namespace, name } = keyOf(path)
    const { noteLength } = this.#options.setting
    const time = this.#time()
    const type = number % 3 === 0 ? 'Warning' : 'Normal'
    return Buffer.from(
      `{"metadata":{"name":"${name}","namespace":"${namespace}","uid":"uid-${number}",` +
        `"creationTimestamp":"${time}"},"eventTime":null,"reportingController":"kubelet",` +
        `"reportingInstance":"node-1","action":"Testing","reason":"Again",` +
        `"regarding":{"kind":"Pod","namespace":"${namespace}","name":"pod-${number % 7}"},` +
        `"note":"${'x'.repeat(noteLength)}","type":"${type}","deprecatedSource":{},` +
        `"deprecatedFirstTimestamp":"${time}","deprecatedLastTimestamp":"${time}",` +
        `"deprecatedCount":1}`,
    )
  }

  #raised({ body }: StoredEvent, by: number): Buffer {
    const event = JSON.parse(body.toString())
    event.deprecatedCount += by
    // The time of an occurrence is known only as the last one of its count.
    if (by > 0) event.deprecatedLastTimestamp = this.#time()
    else event.reportingInstance += 'x'
    return Buffer.from(JSON.stringify(event))
  }

  /** In whole seconds, as clients of core/v1 send it. */
  #time(): string {
    return new Date(this.#options.wallMs()).toISOString().replace(/\.\d+Z$/, 'Z')
  }
}
