/**
 * What must be true of a mirrored cluster, whatever happens to replicas, etcd and the origin:
 * checked on every commit of the simulated etcd.
 */

import type { ClientWorld } from '../../worlds/workload/contract.ts'
import type { ClusterObserver, Commit } from '../etcd/contract.ts'
import { fencesOf } from '../fences.ts'
import { calmNeededMs, checkCalm } from './mirror-calm.ts'
import { MirrorTally } from './mirror-tally.ts'
import { MirrorView } from './mirror-view.ts'
import { type OriginModel, type OriginRecord, versionStride } from './origin-model.ts'
import type { OriginServer } from './origin-server.ts'
import type { MirrorSetting } from './setting.ts'
import { leaderEnd, readChange, type SavedRecord, type StoredMirrorEvent } from './stored-mirror.ts'

const periodMs = 1_000
const calmEveryMs = 10_000
/** A content is compared in full for one of so many puts; at the end for all. */
const contentEvery = 16

export class MirrorChecks implements ClusterObserver {
  readonly #world: ClientWorld
  readonly #server: OriginServer
  readonly #model: OriginModel
  readonly #view: MirrorView
  readonly #tally = new MirrorTally()
  #leaderRevision = 0
  /** The replica that is elected, while the revision is not 0. */
  #leader = 0
  /** How much of the origin's history was compared with what is stored, keyed by stream. */
  readonly #checked = new Map<string, number>()
  /** The origin was restored, and the mirror may not have noticed it: the term then. */
  #unnoticed: { readonly term: number; readonly limit: number } | undefined
  readonly #deletedUids = new Set<string>()
  #deletesSeen = 0
  #calmCheckAt = 0
  #isEnding = false

  constructor(world: ClientWorld, server: OriginServer, setting: MirrorSetting) {
    this.#world = world
    this.#server = server
    this.#model = server.model
    this.#view = new MirrorView(world, server.model, setting)
  }

  get calmNeededMs(): number {
    return calmNeededMs
  }

  get outcomes(): ReadonlyMap<string, number> {
    return this.#tally.outcomes
  }

  /** The replica that etcd says is elected. */
  get elected(): number | undefined {
    return this.#leaderRevision === 0 ? undefined : this.#leader
  }

  start(): void {
    this.#world.after(periodMs, this.#period)
  }

  // ---- restores of the origin

  /**
   * A restored origin must not reach the positions of the mirror before the mirror has noticed:
   * after that nothing distinguishes the two histories. In reality a backup is older than that by minutes at least.
   */
  get versionLimit(): number {
    return this.#unnoticed?.limit ?? Number.POSITIVE_INFINITY
  }

  /** A backup of the origin must be older than this: than everything that the mirror works on. */
  get backupLimit(): number {
    const { streams, record } = this.#view
    const positions = streams.map((stream) => Number(record?.positions[stream] ?? 0))
    return this.isOriginKnown ? Math.min(...positions) - versionStride * 8 : 0
  }

  /** The mirror knows of every restore of the origin. */
  get isOriginKnown(): boolean {
    return this.#unnoticed === undefined
  }

  /** Runs `restore`, which restores the origin. */
  restoreOrigin(restore: () => void): void {
    const limit = this.backupLimit
    this.#noteDeletes()
    restore()
    this.#unnoticed = { term: this.#leaderRevision, limit }
    this.#checked.clear()
    this.#deletesSeen = Math.min(this.#deletesSeen, this.#model.log.length)
  }

  #noticeRestore({ positions }: SavedRecord): void {
    const unnoticed = this.#unnoticed
    if (unnoticed === undefined) return
    const { streams } = this.#view
    const isKnown = streams.every((stream) => {
      const position = Number(positions[stream] ?? Number.POSITIVE_INFINITY)
      return this.#model.isCurrent(position)
    })
    // The replica that was elected at that time may have more in memory than in the record.
    const isAsked =
      this.#leaderRevision !== unnoticed.term ||
      streams.every((stream) => this.#server.hasAnswered(this.#leader, stream))
    if (isKnown && isAsked) this.#unnoticed = undefined
  }

  // ---- commits

  onEvent(text: string): void {
    this.#world.trace('etcd', () => text)
  }

  onCommit(commit: Commit): void {
    let fences: ReadonlyMap<string, number | undefined> | undefined
    for (const change of commit.changes) {
      const read = readChange(change, commit.at, this.#model)
      if (read === undefined) continue
      if (read.kind === 'put' || read.kind === 'record') {
        fences ??= fencesOf(commit.command, leaderEnd)
        this.#checkFence(fences.get(change.key.toString('latin1')), read.kind)
      }
      switch (read.kind) {
        case 'wrong':
          this.#world.violation('only what the origin has', read.what)
          break
        case 'leader':
          this.#elected(read.replica, commit.revision)
          break
        case 'record':
          this.#saved(read.record)
          break
        case 'delete':
          this.#deleted(read.key, commit.at)
          break
        case 'put':
          this.#put(read.event)
      }
    }
  }

  onRestore(): void {
    const { stored } = this.#view
    stored.fill(undefined)
    this.#view.record = undefined
    this.#leaderRevision = 0
    this.#checked.clear()
    for (const change of this.#world.cluster.state().values()) {
      const read = readChange(change, Number.NEGATIVE_INFINITY, this.#model)
      if (read?.kind === 'put') stored[read.event.key] = read.event
      else if (read?.kind === 'record') this.#view.record = read.record
      else if (read?.kind === 'leader') this.#elected(read.replica, change.modRevision)
    }
  }

  #elected(replica: number | undefined, revision: number): void {
    this.#leaderRevision = replica === undefined ? 0 : revision
    if (replica === undefined) return
    this.#leader = replica
    this.#tally.terms++
  }

  /** Two replicas may believe to be elected; the key of the election decides which one writes. */
  #checkFence(fence: number | undefined, what: string): void {
    if (fence === this.#leaderRevision && fence !== 0) return
    this.#world.violation(
      'only the elected replica writes',
      `a ${what} was written for term ${fence}, but the term was ${this.#leaderRevision}`,
    )
  }

  #put(event: StoredMirrorEvent): void {
    const { key, state, epoch } = event
    const before = this.#view.stored[key]
    this.#view.stored[key] = event
    if (++this.#tally.puts % contentEvery === 0) this.#view.checkContent(event)
    if (before === undefined) return
    const isForward =
      epoch > before.epoch || (epoch === before.epoch && state.version > before.state.version)
    const isReplay =
      state.version < before.state.version &&
      this.#model.isCurrent(state.version) &&
      this.#model.isCurrent(before.state.version)
    if (isForward && !isReplay) return
    this.#view.report('never backwards', 'an older state replaced a newer one', event, before)
  }

  /** Retention deletes what is old enough; the mirror what was deleted at the origin. */
  #deleted(key: number, at: number): void {
    const before = this.#view.stored[key]
    this.#view.stored[key] = undefined
    if (before === undefined || !this.#view.isYoung(before.at, at)) return
    this.#noteDeletes()
    const isDeleted = this.#deletedUids.has(before.state.uid)
    const isUndone = !this.#model.isCurrent(before.state.version)
    if (this.#view.setting.deletes === 'explicit' && (isDeleted || isUndone)) return
    this.#view.report('nothing is deleted too early', 'an event was deleted', before)
  }

  #noteDeletes(): void {
    const { log } = this.#model
    for (; this.#deletesSeen < log.length; this.#deletesSeen++) {
      const { kind, state } = log[this.#deletesSeen] as OriginRecord
      if (kind === 'delete') this.#deletedUids.add(state.uid)
    }
  }

  #saved(record: SavedRecord): void {
    this.#tally.saves++
    const before = this.#view.record
    this.#view.record = record
    if (before !== undefined && record.epoch < before.epoch) {
      const what = `the epoch went back from ${before.epoch} to ${record.epoch}`
      this.#world.violation('never backwards', what)
    }
    if (before?.epoch !== record.epoch) this.#checked.clear()
    const positions = Object.entries(record.positions)
    for (const [stream, position] of positions) this.#checkPosition(stream, Number(position))
    this.#noticeRestore(record)
  }

  /** Everything at the origin up to a saved position is stored. */
  #checkPosition(stream: string, position: number): void {
    const model = this.#model
    // The mirror has not noticed yet that the origin was restored.
    if (!model.isCurrent(position)) return
    const [first, end] = model.rangeOf(stream === '' ? undefined : stream)
    const until = model.indexAfter(position)
    const from = this.#checked.get(stream) ?? 0
    for (let index = from; index < until; index++) {
      const record = model.log[index] as OriginRecord
      if (record.key < first || record.key >= end) continue
      if (record.next !== undefined && record.next.version <= position) continue
      if (record.kind === 'put') this.#checkStored(record, position)
      else if (record.kind === 'delete') this.#view.checkRepeated(record, this.#world.now())
    }
    this.#checked.set(stream, Math.max(from, until))
  }

  #checkStored(record: OriginRecord, position: number): void {
    if (this.#mayBeGone(record)) return
    const stored = this.#view.stored[record.key]
    if (stored !== undefined && this.#isAtLeast(stored, record)) return
    const path = this.#model.pathOf(record.key)
    this.#world.violation(
      'positions are only saved past what is stored',
      `position ${position} was saved, but version ${record.version} of ${path} is not stored`,
      [
        `it was written at ${record.at.toFixed(0)} ms, and is uid ${record.state.uid}`,
        `stored: ${this.#view.describe(stored)}`,
      ],
    )
  }

  #isAtLeast({ state, epoch }: StoredMirrorEvent, record: OriginRecord): boolean {
    if (this.#model.isCurrent(state.version)) return state.version >= record.version
    // Until the mirror knows of the restore, it may have what the restore has undone.
    return epoch >= (this.#view.record?.epoch ?? 0)
  }

  /** Retention here, or a delete at the origin that the mirror repeats, may have removed it. */
  #mayBeGone(record: OriginRecord): boolean {
    if (!this.#view.isYoung(record.state.at)) return true
    if (this.#view.setting.deletes === 'never') return false
    let later: OriginRecord | undefined = record
    while (later?.kind === 'put') later = later.next
    return later !== undefined
  }

  // ---- the calm world

  readonly #period = (): void => {
    this.#world.after(periodMs, this.#period)
    this.#noteDeletes()
    this.#tally.askReplicas(this.#world)
    const { calmSince } = this.#world
    const now = this.#world.now()
    if (calmSince === undefined || this.#isEnding || now < this.#calmCheckAt) return
    if (now - calmSince >= calmNeededMs) this.#checkCalm(calmSince)
  }

  #checkCalm(calmSince: number): void {
    this.#tally.calmChecks++
    this.#calmCheckAt = this.#world.now() + calmEveryMs
    checkCalm(this.#view, calmSince)
  }

  /** The writers have stopped, and the world has been calm for long enough. */
  atEnd(): void {
    this.#isEnding = true
    this.#checkCalm(this.#world.calmSince ?? 0)
    for (const event of this.#view.stored) if (event !== undefined) this.#view.checkContent(event)
  }

  hasEnded(): void {}
}
