/**
 * Watches: exactly the changes in scope, in order, each once, with the states before them, in whole
 * transactions; and all of them up to the version that each batch reports.
 *
 * A watch may end with `compacted` when etcd has compacted what it needs next, when the replica has
 * loaded everything again, which production code does when it cannot verify that etcd is in the
 * same history, and after a restore of etcd. It never continues in another history: once it has
 * reported a version of a lost one, it reports none of the new one.
 */
import type { WatchBatch } from '../../../src/storage/storage.ts'
import { describeFailure, type Failure } from './failures.ts'
import type { Journal, SeenBatch, SeenItem } from './journal.ts'
import { type ChangeRecord, describe, historyOf, isSame, type Lineage } from './lineage.ts'
import type { Holder, ReplicaView } from './operations.ts'
import type { Reporter } from './reporter.ts'
import { firstRevisionFrom, isStateVersion, revisionIn, stateVersion } from './stored-text.ts'
import type { Truth } from './truth.ts'

/** A watch in one lineage. */
class Track {
  readonly lineage: Lineage
  readonly #namespace: string | undefined
  readonly #from: number
  /** Where in the log the next change is looked for. */
  position: number

  constructor(lineage: Lineage, namespace: string | undefined, from: number) {
    this.lineage = lineage
    this.#namespace = namespace
    this.#from = from
    this.position = lineage.positionAfter(from)
  }

  /** The next change in scope; undefined when there is none yet. */
  peek(): ChangeRecord | undefined {
    for (;;) {
      const record = this.lineage.change(this.position)
      if (record === undefined) return undefined
      const isWanted = this.#namespace === undefined || record.namespace === this.#namespace
      if (isWanted && record.version > this.#from) return record
      this.position++
    }
  }

  /** What is wrong with a batch in this lineage. */
  problem({ items, version }: SeenBatch): Problem | undefined {
    for (const item of items) {
      const problem = this.#itemProblem(item)
      if (problem !== undefined) return problem
      this.position++
    }
    const newest = Math.max(stateVersion(this.lineage.newest), this.#from)
    if (version > newest) {
      const what = `a watch reported version ${version}, but the newest revision is ${this.lineage.newest}`
      return { guarantee: 'watch versions are true', what }
    }
    const missed = this.peek()
    if (missed === undefined || missed.version > version) return undefined
    const what = `a watch reported version ${version} without having delivered ${describe(missed)}`
    return { guarantee: 'watches deliver exactly the changes, in order', what, path: missed.path }
  }

  #itemProblem(item: SeenItem): Problem | undefined {
    const expected = this.peek()
    const { key, version } = item.stored
    const path = `${key.namespace}/${key.name}`
    if (expected === undefined || expected.path !== path || expected.version !== version) {
      const what = `${item.type} of ${path} with version ${version} was delivered, where ${describe(expected)} comes next`
      return { guarantee: 'watches deliver exactly the changes, in order', what, path }
    }
    const wrong = compareItem(expected, item)
    if (wrong === undefined) return undefined
    const what = `${wrong}: ${describe(expected)}`
    return { guarantee: 'watches deliver true states', what, path }
  }
}

interface Problem {
  readonly guarantee: string
  readonly what: string
  readonly path?: string
}

export interface WatchOptions {
  readonly truth: Truth
  readonly reporter: Reporter
  readonly journal: Journal
  readonly namespace: string | undefined
  readonly from: number
  /** The epoch that `from` is a version of. */
  readonly epoch: number
  /** How often the replica has loaded its memory. */
  readonly initializations: number
  /** The revision that its memory has reached. */
  readonly memoryRevision: number
}

export class WatchCheck implements Holder {
  readonly view: ReplicaView
  readonly incarnation: number
  readonly namespace: string | undefined
  readonly startedAt: number
  readonly #truth: Truth
  readonly #reporter: Reporter
  readonly #journal: Journal
  readonly #options: WatchOptions
  #restores = 0
  readonly #from: number
  /**
   * The lineages that everything so far fits to, oldest first; one unless etcd was restored. Empty
   * until its beginning was checked.
   */
  #tracks: readonly Track[] = []
  #newestEpoch = 0
  /**
   * It began at a version that its replica did not know yet. If etcd is then restored to before
   * that version, neither can notice: it waits until the new history reaches the version, as
   * docs/how-to/back-up-and-restore.md says.
   */
  readonly #isAhead: boolean
  /** It may continue in a lost history that is forgotten by now: its changes cannot be judged. */
  #isUnknown = false
  #version: number
  /** It is being read; a stalled client is not entitled to progress. */
  isPulled = true
  pulledSince: number
  /** When progress was requested, and not reported yet. */
  progressWantedSince: number | undefined

  constructor(view: ReplicaView, options: WatchOptions) {
    const { truth, reporter, journal, namespace, from } = options
    this.view = view
    this.incarnation = view.incarnation
    this.namespace = namespace
    this.startedAt = view.world.now()
    this.pulledSince = this.startedAt
    this.#truth = truth
    this.#reporter = reporter
    this.#journal = journal
    this.#options = options
    this.#from = from
    this.#version = from
    this.#isAhead = options.memoryRevision < revisionIn(from)
    journal.add(() => this.#begin(), { version: from })
  }

  #begin(): void {
    const truth = this.#truth
    const { view, namespace } = this
    const { from, epoch } = this.#options
    this.#restores = truth.restores
    this.#newestEpoch = truth.epoch
    // A replica that has not noticed a restore serves watches from its cache, and its client may
    // have got the version there too.
    const isAny = this.#isAhead || view.sinceEpoch < truth.epoch
    const lineages = [truth.current, ...truth.past]
      .filter((lineage) => lineage.epoch >= Math.min(view.sinceEpoch, epoch))
      .filter((lineage) => isAny || isShared(truth, lineage, { epoch, version: from }))
      .reverse()
    this.#isUnknown = isAny && lineages.some(({ horizon }) => horizon > revisionIn(from))
    const followed = lineages.length === 0 ? [truth.current] : lineages
    this.#tracks = followed.map((lineage) => new Track(lineage, namespace, from))
  }

  get epoch(): number {
    return this.#tracks[0]?.lineage.epoch ?? this.#options.epoch
  }

  get floor(): number {
    return Math.max(0, firstRevisionFrom(this.#version) - 1)
  }

  /** A version to resume from. */
  get version(): number {
    return this.#version
  }

  saw(batch: WatchBatch): void {
    this.progressWantedSince = undefined
    const before = this.#version
    this.#version = Math.max(before, batch.version)
    const retained = this.#journal.retainBatch(batch)
    this.#journal.add(() => this.#check(retained, before), { version: batch.version })
  }

  /** `before`: the version that it had reported before the batch. */
  #check(batch: SeenBatch, before: number): void {
    const { version, items } = batch
    if (version < before) {
      const what = `a watch went back from version ${before} to ${version}`
      this.#report({ guarantee: 'watch versions never go back', what })
    }
    if (items.length > 0 && !isStateVersion(version)) {
      const what = `a batch ended with version ${version}, in the middle of a transaction`
      this.#report({ guarantee: 'watches deliver whole transactions', what })
    }
    if (this.#newestEpoch !== this.#truth.epoch) this.#addLineages(before)
    if (!this.#isUnknown) this.#follow(batch)
  }

  /** A watch that has not passed the snapshot of a restore may continue in either history. */
  #addLineages(version: number): void {
    const { current, past } = this.#truth
    for (const lineage of [current, ...past].reverse()) {
      if (lineage.epoch <= this.#newestEpoch) continue
      const isWaiting = this.#isAhead && version === this.#from
      const isContinued = this.#tracks.some(({ lineage: { epoch } }) =>
        isShared(this.#truth, lineage, { epoch, version }),
      )
      if (!isWaiting && !isContinued) continue
      const track = new Track(lineage, this.namespace, version)
      this.#tracks = [...this.#tracks, track]
    }
    this.#newestEpoch = current.epoch
  }

  /** Drops the lineages that the batch does not fit; a watch never leaves the last one. */
  #follow(batch: SeenBatch): void {
    let problem: Problem | undefined
    const left = this.#tracks.filter((track) => {
      const found = track.problem(batch)
      problem ??= found
      return found === undefined
    })
    if (left.length > 0) this.#tracks = left
    else if (problem !== undefined) this.#report(problem)
  }

  /** The watch ended by itself, without an error. Watches end when their clients leave. */
  ended(): void {
    this.#journal.add(() => {
      this.#report({ guarantee: 'watches stay open', what: 'a watch ended without an error' })
    })
  }

  /** The watch ended with an error. `isCalm`: there was no fault for long enough to recover. */
  failed(failure: Failure, initializations: number, isCalm: boolean): void {
    this.#journal.add(() => this.#checkFailure(failure, initializations, isCalm))
  }

  #checkFailure(failure: Failure, initializations: number, isCalm: boolean): void {
    if (isCalm && failure.kind !== 'compacted') {
      const what = 'a watch ended with an error in a calm world'
      this.#report({ guarantee: 'watches stay open', what }, [describeFailure(failure)])
    }
    if (failure.kind !== 'compacted') return
    if (this.#truth.restores !== this.#restores || this.view.sinceEpoch !== this.#truth.epoch)
      return
    if (initializations !== this.#options.initializations) return
    if (this.#truth.compacted >= firstRevisionFrom(this.#version)) return
    const what = `a watch from version ${this.#version} ended as compacted, but etcd is compacted to revision ${this.#truth.compacted} only, and the replica has not loaded its memory again`
    const guarantee = 'watches end as compacted only when history is lost'
    this.#report({ guarantee, what }, [describeFailure(failure)])
  }

  /** How long the oldest change that was not delivered has been committed. */
  lagMs(now: number): number {
    const next = this.#isUnknown ? undefined : this.#next()
    return next === undefined ? 0 : now - Math.max(next.at, this.pulledSince)
  }

  #next(): ChangeRecord | undefined {
    return this.#tracks.at(-1)?.peek()
  }

  /** The change that should have been delivered, for evidence. */
  describeNext(): string {
    return describe(this.#next())
  }

  describe(): string {
    const { view, namespace, startedAt } = this
    return `watch of ${namespace ?? 'all namespaces'} at replica ${view.index} (process ${this.incarnation}) since ${startedAt.toFixed(1)} ms, from version ${this.#from}, reached version ${this.#version}, epoch ${this.epoch}`
  }

  #report({ guarantee, what, path }: Problem, evidence: readonly string[] = []): void {
    const track = this.#tracks[0]
    this.#reporter.report(guarantee, what, [
      this.describe(),
      ...evidence,
      ...(path === undefined || track === undefined ? [] : historyOf(track.lineage, path)),
      ...(track === undefined ? [] : following(track.lineage, track.position)),
    ])
  }
}

/** Returns whether a version of one epoch means the same in another lineage. */
function isShared(
  truth: Truth,
  lineage: Lineage,
  { epoch, version }: { readonly epoch: number; readonly version: number },
): boolean {
  return revisionIn(version) <= truth.sharedUntil(lineage.epoch, epoch)
}

/** The next changes of the log, whatever their scope. */
function following(lineage: Lineage, position: number): readonly string[] {
  return [0, 1, 2, 3].map((step) => `log: ${describe(lineage.change(position + step))}`)
}

function compareItem(expected: ChangeRecord, item: SeenItem): string | undefined {
  const { before } = expected
  if (expected.isDelete !== (item.type === 'delete')) return `delivered as ${item.type}`
  if (item.type === 'delete') {
    const last = before === undefined || before.body.equals(item.stored.body)
    return last ? undefined : 'a delete with another last state'
  }
  if (!isSame(expected, item.stored)) return 'other bytes than were committed'
  const replaced = before === undefined || before.isDelete ? undefined : before
  const { previous } = item
  if (replaced === undefined) return previous && 'a new event with a previous state'
  if (previous === undefined) return 'a change without its previous state'
  return isSame(replaced, previous)
    ? undefined
    : `another previous state than ${describe(replaced)}`
}
