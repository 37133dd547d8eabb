/**
 * What retention asks the archive: which events may be deleted, how long they can wait, and what is
 * lost when they cannot.
 */
import type { ArchiveGate, LossReason } from '../retention/archive-gate.ts'
import { isAfter, type Version } from '../storage/resource-version.ts'
import type { Catalogue } from './catalogue.ts'
import type { Gap } from './manifest.ts'

/** etcd keeps changes for the archive at most this long; afterwards all events are read instead. */
const READ_AFTER_MS_MAX = 60 * 60_000
/** Deleted versions whose fate is not known yet; more are counted as lost: 8 MB. */
const PENDING_MAX = 1_000_000

export interface ArchiveStateOptions {
  readonly catalogue: Pick<Catalogue, 'pointer' | 'position'>
  /** Where the archive is. */
  readonly name: string
  /** Whether etcd and memory have room for events that have expired. */
  readonly hasRoom: () => boolean
  readonly wallTime?: (() => number) | undefined
}

export class ArchiveState implements ArchiveGate {
  readonly #options: ArchiveStateOptions
  readonly #lost = new Map<LossReason, number>()
  #pending: { readonly version: Version; readonly reason: LossReason }[] = []

  constructor(options: ArchiveStateOptions) {
    this.#options = options
  }

  get name(): string {
    return this.#options.name
  }

  isArchived(version: Version): boolean {
    return !isAfter(version, this.#options.catalogue.position)
  }

  canWait(): boolean {
    return this.#options.hasRoom()
  }

  readAfter(): Version | undefined {
    const { catalogue, wallTime = Date.now } = this.#options
    const { pointer } = catalogue
    if (pointer === undefined || !this.canWait()) return undefined
    return wallTime() - pointer.positionAtMs > READ_AFTER_MS_MAX ? undefined : pointer.position
  }

  /**
   * An event that is deleted before it is archived is lost only if the archiver does not read its last
   * change from the stream. That is known once the position has passed it.
   */
  onDeleted(version: Version, reason: LossReason): void {
    if (this.isArchived(version)) return
    if (this.#pending.length < PENDING_MAX) this.#pending.push({ version, reason })
    else this.#count(reason)
  }

  /** Events that were deleted before they were archived, since the start of this process. */
  get lost(): ReadonlyMap<LossReason, number> {
    this.#settle()
    return this.#lost
  }

  #settle(): void {
    const gaps = this.#options.catalogue.pointer?.gaps ?? []
    const left = this.#pending.filter(({ version }) => !this.isArchived(version))
    if (left.length === this.#pending.length) return
    for (const { version, reason } of this.#pending) {
      if (this.isArchived(version) && gaps.some((gap) => isIn(gap, version))) this.#count(reason)
    }
    this.#pending = left
  }

  #count(reason: LossReason): void {
    this.#lost.set(reason, (this.#lost.get(reason) ?? 0) + 1)
  }
}

function isIn({ from, to }: Gap, version: Version): boolean {
  return isAfter(version, from) && !isAfter(version, to)
}
