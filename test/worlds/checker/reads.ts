/**
 * Every state that a client read, compared with what etcd had committed.
 *
 * A consistent read that began at revision r and ended at revision s returns the state at a
 * revision from r to s: that is linearizability, since etcd's revisions are the one order of all
 * changes. A read of a state not older than a version returns one from there on; a read of any
 * state one from what the memory of the replica had reached when it began.
 *
 * After a restore of etcd without --bump-revision (docs/how-to/back-up-and-restore.md, decision 22) there are two
 * histories. Consistent reads and writes that begin after the restore must not show the lost one:
 * they wait until the connection is verified. Reads that were under way may show either. Reads of
 * any state, and of a state not older than a version that memory has, may show the lost one until
 * the replica notices; a process that began after the restore never does.
 */
import { describeFailure, type Failure } from './failures.ts'
import type { Journal, SeenEvent } from './journal.ts'
import { describeSeen, historyOf, type Lineage, type Seen } from './lineage.ts'
import { longestMs, Operation, type ReplicaView } from './operations.ts'
import type { Reporter } from './reporter.ts'
import { isStateVersion, revisionIn, stateVersion } from './stored-text.ts'
import type { Truth } from './truth.ts'

export interface CheckOptions {
  readonly truth: Truth
  readonly reporter: Reporter
  readonly journal: Journal
}

export interface ReadKind {
  readonly kind: 'get' | 'list'
  /** Undefined: a consistent read. 0: any state. */
  readonly notOlderThan?: number | undefined
  /** Exactly this state. */
  readonly at?: number | undefined
}

/** The revisions of one lineage that a read may have seen. */
export interface Window {
  readonly lineage: Lineage
  readonly from: number
  readonly to: number
}

export class ReadChecks {
  readonly #truth: Truth
  readonly #reporter: Reporter
  readonly #journal: Journal

  constructor({ truth, reporter, journal }: CheckOptions) {
    this.#truth = truth
    this.#reporter = reporter
    this.#journal = journal
  }

  begin(view: ReplicaView, { kind, notOlderThan, at }: ReadKind): Operation {
    const operation = new Operation(view, kind, longestMs[kind])
    operation.isLenient = at !== undefined || notOlderThan !== undefined
    if (at !== undefined) operation.wanted = revisionIn(at)
    const oldest =
      notOlderThan === undefined
        ? operation.wanted
        : this.#memoryFloor(view, revisionIn(notOlderThan))
    const version = oldest === undefined ? undefined : stateVersion(oldest)
    this.#journal.add(
      () => {
        operation.begin(this.#truth)
        operation.floor = oldest ?? operation.revision
      },
      { version },
    )
    return operation
  }

  /** What memory had reached; a process that has not loaded anything yet reads from etcd. */
  #memoryFloor(view: ReplicaView, wanted: number): number {
    return Math.max(view.memoryRevision, view.sinceRevision, wanted)
  }

  saw(operation: Operation, path: string, seen: SeenEvent | undefined): void {
    operation.close()
    const state = seen && this.#journal.retain(seen)
    this.#journal.add(() => this.#checkState(operation, path, state), {
      version: seen?.version,
      isExplained: () => seen !== undefined || this.couldSee(operation, path, undefined),
    })
  }

  #checkState(operation: Operation, path: string, seen: Seen): void {
    if (this.couldSee(operation, path, seen)) return
    const windows = this.windows(operation)
    this.#reporter.report(
      operation.isLenient ? 'reads are as new as asked for' : 'consistent reads are linearizable',
      `${path} was seen as ${describeSeen(seen)}, which was never its state between revisions ${rangesOf(windows)}`,
      [operation.describe(), ...windows.flatMap(({ lineage }) => historyOf(lineage, path))],
    )
  }

  /** Returns whether the key had this state at some revision that the operation may have read. */
  couldSee(operation: Operation, path: string, seen: Seen): boolean {
    const { current } = this.#truth
    if (operation.epoch === current.epoch && !operation.isLenient) {
      if (operation.floor < current.horizon) return true
      return current.couldSee(path, seen, [operation.floor, current.newest])
    }
    return this.windows(operation).some(
      ({ lineage, from, to }) =>
        from < lineage.horizon || (from <= to && lineage.couldSee(path, seen, [from, to])),
    )
  }

  /** All states that the operation may have read; one window unless etcd was restored. */
  windows(operation: Operation): readonly Window[] {
    const { current, past } = this.#truth
    const { epoch, isLenient, view } = operation
    const oldest = isLenient ? Math.min(epoch, view.sinceEpoch) : epoch
    const windows: Window[] = []
    for (const lineage of [current, ...past]) {
      if (lineage.epoch < oldest) break
      windows.push({ lineage, from: fromIn(operation, lineage), to: lineage.newest })
    }
    return windows
  }

  /** The newest version of the store. */
  sawVersion(operation: Operation, version: number): void {
    operation.close()
    this.#journal.add(() => this.#checkVersion(operation, version), { version })
  }

  #checkVersion(operation: Operation, version: number): void {
    const revision = revisionIn(version)
    const isIn = this.windows(operation).some(({ from, to }) => from <= revision && revision <= to)
    if (isIn && isStateVersion(version)) return
    this.#reporter.report(
      'consistent reads are linearizable',
      `the newest version was reported as ${version}, but the revision was ${rangesOf(this.windows(operation))}`,
      [operation.describe()],
    )
  }

  /** A read failed. Only claims about versions can be checked. */
  failed(operation: Operation, failure: Failure, wanted: number | undefined): void {
    operation.close()
    this.#journal.add(() => {
      if (failure.kind === 'compacted') this.#checkCompacted(operation, failure, wanted)
      else if (failure.kind === 'future') this.#checkFuture(operation, failure, wanted)
    })
  }

  #checkCompacted(operation: Operation, failure: Failure, wanted: number | undefined): void {
    const revision = wanted === undefined ? Number.POSITIVE_INFINITY : revisionIn(wanted)
    if (this.#truth.compacted >= revision || operation.epoch !== this.#truth.epoch) return
    if (operation.view.sinceEpoch !== operation.epoch) return
    this.#reporter.report(
      'lists expire only by compaction',
      `the state at version ${wanted} was refused as compacted, but etcd is compacted to revision ${this.#truth.compacted} only`,
      [operation.describe(), describeFailure(failure)],
    )
  }

  #checkFuture(operation: Operation, failure: Failure, wanted: number | undefined): void {
    if (wanted !== undefined && wanted > stateVersion(operation.revision)) return
    if (operation.epoch !== this.#truth.epoch || operation.view.sinceEpoch !== operation.epoch)
      return
    this.#reporter.report(
      'existing versions are not refused as future',
      `version ${wanted} was refused, but revision ${operation.revision} was committed before`,
      [operation.describe(), describeFailure(failure)],
    )
  }
}

/** The oldest state of a lineage that the operation may have read. */
function fromIn({ epoch, floor, wanted, isLenient, view }: Operation, lineage: Lineage): number {
  if (wanted !== undefined) return wanted
  // Memory of an earlier lineage says nothing about this one: any of its own states may be read.
  const known = isLenient ? view.sinceEpoch : epoch
  return lineage.epoch > known ? lineage.base : floor
}

export function rangesOf(windows: readonly Window[]): string {
  return windows
    .map(({ from, to, lineage }) => `${from} and ${to} (epoch ${lineage.epoch})`)
    .join(', or ')
}
