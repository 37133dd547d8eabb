/** The writers of the origin: bursts of creates, series patches, deletes and re-creates. */
import { Random } from '../../support/random.ts'
import type { ClientWorld } from '../../worlds/workload/contract.ts'
import type { Workload } from '../../worlds/workload/workload.ts'
import type { MirrorChecks } from './mirror-checks.ts'
import type { OriginModel } from './origin-model.ts'
import type { OriginServer } from './origin-server.ts'
import type { MirrorSetting } from './setting.ts'

const burstEveryMs = 250
const expireEveryMs = 5_000
const hotShare = 0.5
const hotKeys = 15
const rareShare = 0.004

export interface OriginWritersOptions {
  readonly world: ClientWorld
  readonly server: OriginServer
  readonly setting: MirrorSetting
  readonly checks: Pick<MirrorChecks, 'versionLimit' | 'outcomes'>
  readonly keeps: ((operation: number) => boolean) | undefined
}

export class OriginWriters implements Workload {
  readonly #options: OriginWritersOptions
  readonly #model: OriginModel
  readonly #arrivals: Random
  readonly #seed: number
  #bursts = 0
  #isStopped = false

  constructor(options: OriginWritersOptions) {
    const { world, server } = options
    this.#options = options
    this.#model = server.model
    this.#arrivals = world.random()
    this.#seed = this.#arrivals.below(2 ** 32)
    world.after(0, this.#burst)
    world.after(expireEveryMs, this.#expire)
  }

  /** Writes at the origin. */
  get requests(): number {
    return this.#model.writes
  }

  get operations(): number {
    return this.#bursts
  }

  get outcomes(): ReadonlyMap<string, number> {
    return this.#options.checks.outcomes
  }

  stop(): void {
    this.#isStopped = true
  }

  readonly #burst = (): void => {
    if (this.#isStopped) return
    const { world, server, setting, keeps } = this.#options
    const isStorm = world.calmSince === undefined
    const perSecond = isStorm ? setting.stormWritesPerSecond : setting.writesPerSecond
    const mean = (perSecond * burstEveryMs) / 1_000
    world.after(-Math.log(1 - this.#arrivals.next()) * burstEveryMs, this.#burst)
    const number = ++this.#bursts
    if (keeps?.(number) === false || !server.isUp) return
    const random = new Random(Math.imul(this.#seed ^ number, 0x9e3779b1))
    for (let left = random.below(2 * mean); left > 0 && this.#hasRoom; left--) this.#write(random)
    server.changed()
  }

  get #hasRoom(): boolean {
    return this.#model.version < this.#options.checks.versionLimit
  }

  #write(random: Random): void {
    const model = this.#model
    const now = this.#options.world.now()
    const key = this.#pickKey(random)
    const kind = random.next()
    // A re-create is a delete and a create with another uid.
    if (kind < 0.2 && model.current(key) !== undefined) model.remove(key, now, 'delete')
    if (kind >= 0.1) model.put(key, now)
  }

  /** Few events have most of the writes; some are written so rarely that they expire. */
  #pickKey(random: Random): number {
    const { keys } = this.#model
    if (random.chance(hotShare)) return Math.floor(random.below(hotKeys) * (keys / hotKeys))
    const isRare = random.chance(rareShare)
    return random.below(Math.floor(keys / 5)) * 5 + (isRare ? 4 : random.below(4))
  }

  /** The origin deletes what nobody has written for its TTL. */
  readonly #expire = (): void => {
    if (this.#isStopped) return
    const { world, server, setting } = this.#options
    world.after(expireEveryMs, this.#expire)
    if (!server.isUp || !this.#hasRoom) return
    this.#model.expire(world.now(), setting.originTtlMs)
    server.changed()
  }
}
