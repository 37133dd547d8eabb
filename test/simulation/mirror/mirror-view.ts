/** The mirrored cluster as the checks see it: what etcd holds, compared with what the origin has. */
import type { ClientWorld } from '../../worlds/workload/contract.ts'
import type { OriginModel, OriginRecord } from './origin-model.ts'
import type { MirrorSetting } from './setting.ts'
import { hasContentOf, type SavedRecord, type StoredMirrorEvent } from './stored-mirror.ts'

/** The tolerance of ages that are compared with a TTL: wall clocks differ by a second, and count seconds. */
const ageSlackMs = 5_000
const driftShare = 0.03
/** The same rule as in src/registry/mirrored-event.ts. */
const ttlSlackMs = (ttlMs: number): number => Math.max(60_000, ttlMs * 0.1)

export class MirrorView {
  readonly world: ClientWorld
  readonly model: OriginModel
  readonly setting: MirrorSetting
  readonly stored: (StoredMirrorEvent | undefined)[]
  record: SavedRecord | undefined

  constructor(world: ClientWorld, model: OriginModel, setting: MirrorSetting) {
    this.world = world
    this.model = model
    this.setting = setting
    this.stored = new Array<StoredMirrorEvent | undefined>(model.keys).fill(undefined)
  }

  get streams(): readonly string[] {
    return this.setting.namespaces ?? ['']
  }

  /** Returns whether retention cannot have deleted what was written at that true time. */
  isYoung(at: number, now: number = this.world.now()): boolean {
    return now - at < this.world.limits.eventTtlMs * (1 - driftShare) - ageSlackMs
  }

  checkContent(event: StoredMirrorEvent): void {
    if (hasContentOf(event, this.model)) return
    this.world.violation('only what the origin has', 'a stored event has another content', [
      event.value.toString(),
    ])
  }

  /** A delete that the mirror saw, at the latest then, before the event could have expired. */
  checkRepeated({ key, state }: OriginRecord, seenAt: number): void {
    const { deletes, originTtlMs } = this.setting
    if (deletes === 'never') return
    const stored = this.stored[key]
    if (stored?.state.uid !== state.uid) return
    // A list does not have the last state: the mirror knows the age of what it has stored.
    const ageMs = seenAt + ageSlackMs - stored.state.at
    if (ageMs > originTtlMs - ttlSlackMs(originTtlMs)) return
    this.report('deletes are repeated', 'an event was deleted at the origin', stored)
  }

  report(
    guarantee: string,
    what: string,
    event: StoredMirrorEvent,
    before?: StoredMirrorEvent,
  ): void {
    this.world.violation(guarantee, `${what}: ${this.model.pathOf(event.key)}`, [
      `stored: ${this.describe(event)}`,
      `before: ${this.describe(before)}`,
      `the record: ${JSON.stringify(this.record)}`,
    ])
  }

  describe(event: StoredMirrorEvent | undefined): string {
    if (event === undefined) return 'nothing'
    const { state, epoch, at } = event
    const lost = this.model.isCurrent(state.version) ? '' : ', which a restore has undone'
    return `version ${state.version}${lost}, epoch ${epoch}, uid ${state.uid}, committed at ${at.toFixed(0)} ms`
  }
}
