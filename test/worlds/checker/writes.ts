/**
 * Every write that a client began, and what became of it.
 *
 * - A write that was acknowledged is a commit of exactly these bytes with exactly this version.
 * - A write that was refused is never committed; one with an unknown outcome at most once.
 * - A write that depends on a state replaces exactly that state.
 * - An event disappears by a delete of a client that had decided on exactly that state, or because
 *   it expired.
 */
import type { Change, Commit } from './commit.ts'
import { describeFailure, type Failure, isUnknown } from './failures.ts'
import type { Journal } from './journal.ts'
import { type ChangeRecord, describe, historyOf } from './lineage.ts'
import type { ReplicaView } from './operations.ts'
import type { CheckOptions } from './reads.ts'
import type { Reporter } from './reporter.ts'
import { openText } from './stored-text.ts'
import type { Truth, TruthListener } from './truth.ts'
import { type Claim, isBasedOn, isDecidedOn, type Verb, WriteOperation } from './write-operation.ts'

/** Writes with an unknown outcome may still be applied for this long. */
const unknownMsMax = 30 * 60_000

/** What a write returned. */
interface Result {
  readonly version: number | undefined
  readonly body: Buffer
}

/** Which deletes retention may make. */
interface DeletesOfRetention {
  /** Returns whether the state may have expired by this time. */
  isDue(state: ChangeRecord, at: number): boolean
  mayBeEviction(record: ChangeRecord): boolean
  /** No client has made the delete. */
  judge(record: ChangeRecord, before: ChangeRecord): void
}

export class WriteChecks implements TruthListener {
  readonly #truth: Truth
  readonly #reporter: Reporter
  readonly #retention: DeletesOfRetention
  readonly #journal: Journal
  /** Open writes, and writes with an unknown outcome that are not committed. */
  readonly #pending = new Map<number, WriteOperation>()
  /** Deletes among them, by path. */
  readonly #deletes = new Map<string, WriteOperation[]>()
  #lastId = 0
  /** The last operation whose beginning was checked. */
  #begunId = 0

  constructor({ truth, reporter, journal }: CheckOptions, retention: DeletesOfRetention) {
    this.#truth = truth
    this.#reporter = reporter
    this.#journal = journal
    this.#retention = retention
    truth.listen(this)
  }

  get pendingCount(): number {
    return this.#pending.size
  }

  begin(view: ReplicaView, verb: Verb, path: string | undefined): WriteOperation {
    const operation = new WriteOperation(view, this.#journal, { id: ++this.#lastId, verb, path })
    this.#journal.add(() => {
      operation.begin(this.#truth)
      this.#begunId = operation.id
      this.#pending.set(operation.id, operation)
      if (verb === 'delete' && path !== undefined) this.#addDelete(path, operation)
    })
    return operation
  }

  /** Returns whether all puts of the commit are of writes that have begun: ids rise with time. */
  hasBegun({ changes }: Commit): boolean {
    return changes.every(
      ({ type, value }) => type === 'delete' || (openText(value)?.operation ?? 0) <= this.#begunId,
    )
  }

  #addDelete(path: string, operation: WriteOperation): void {
    const others = this.#deletes.get(path)
    if (others === undefined) this.#deletes.set(path, [operation])
    else others.push(operation)
  }

  onOtherKey(_change: Change, _commit: Commit): void {}

  onChange(record: ChangeRecord): void {
    if (record.isDelete) this.#onDelete(record)
    else this.#onPut(record)
  }

  #onPut(record: ChangeRecord): void {
    const operation = this.#pending.get(record.operation)
    if (operation === undefined) {
      const what = `${describe(record)}, although that write had been refused or was applied before`
      this.#report('refused writes are never applied', what, record)
      return
    }
    if (operation.committed !== undefined) {
      const what = `${describe(record)}, which was already applied with version ${operation.committed.version}`
      this.#report('a write is applied at most once', what, record)
    }
    operation.committed = record
    const { path, body } = operation
    if (path !== undefined && path !== record.path) {
      this.#report('writes go to their key', `${describe(record)} was meant for ${path}`, record)
    }
    if (body !== undefined && !body.equals(record.body)) {
      this.#report(
        'writes keep their bytes',
        `other bytes were stored: ${describe(record)}`,
        record,
      )
    }
    if (!isBasedOn(operation, record)) this.#reportBase(operation, record)
    if (operation.endedAt !== undefined) this.#pending.delete(operation.id)
  }

  #reportBase(operation: WriteOperation, record: ChangeRecord): void {
    const base =
      operation.basedVersion > 0
        ? `version ${operation.basedVersion} of operation ${operation.basedOperation}`
        : 'no event'
    const what = `${describe(record)} was decided on ${base}, but replaced ${describe(record.before)}`
    this.#report('no lost updates', what, record)
  }

  #onDelete(record: ChangeRecord): void {
    const { before } = record
    if (before === undefined || before.isDelete) {
      this.#report('simulated etcd', `deleted what did not exist: ${describe(record)}`, record)
      return
    }
    const candidates = this.#candidates(record.path, before)
    const isDue = this.#retention.isDue(before, record.at)
    if (candidates.length === 0) {
      if (isDue) return
      if (this.#retention.mayBeEviction(record)) this.#retention.judge(record, before)
      else this.#reportEarly(record, before)
      return
    }
    const claim: Claim = {
      record,
      before,
      open: candidates.length,
      isAcknowledged: false,
      isExplained: isDue || this.#retention.mayBeEviction(record),
    }
    for (const operation of candidates) {
      operation.claim = claim
      // Its outcome is not known, and will not be.
      if (operation.endedAt === undefined) continue
      claim.isExplained = true
      this.#drop(operation)
    }
  }

  #candidates(path: string, before: ChangeRecord): readonly WriteOperation[] {
    const deletes = this.#deletes.get(path)
    if (deletes === undefined) return []
    return deletes.filter(
      (operation) => isDecidedOn(operation, before) && this.#claimOf(operation) === undefined,
    )
  }

  /** An operation that has decided again lost the race for the delete that it could have made. */
  #claimOf(operation: WriteOperation): Claim | undefined {
    const { claim } = operation
    if (claim === undefined || isDecidedOn(operation, claim.before)) return claim
    this.#release(operation, 'it has decided again')
    return undefined
  }

  #reportEarly(record: ChangeRecord, before: ChangeRecord): void {
    const age = record.at - before.at
    const what = `an event was deleted ${age.toFixed(0)} ms after its last write, too early to expire by any policy in force, no budget was exceeded, and no client had decided to delete that state`
    this.#report('no early expiry, no unexplained delete', what, record)
  }

  /** The write was acknowledged with this version and these bytes. */
  acknowledged(operation: WriteOperation, { version, body }: Result): void {
    operation.close()
    const result = { version, body: this.#journal.retainBytes(body) }
    this.#journal.add(() => this.#checkAcknowledged(operation, result), { version })
  }

  #checkAcknowledged(operation: WriteOperation, result: Result): void {
    const { committed, verb } = operation
    if (verb === 'delete') this.#acknowledgedDelete(operation, this.#claimOf(operation), result)
    else if (committed === undefined || committed.version !== result.version) {
      const what = `acknowledged with version ${result.version}, but etcd committed ${describe(committed)}`
      this.#reportOf(operation, 'acknowledged writes are committed', what)
    } else if (!committed.body.equals(result.body)) {
      const what = `acknowledged with other bytes than were committed: ${describe(committed)}`
      this.#reportOf(operation, 'acknowledged writes are committed', what)
    }
    this.#drop(operation)
  }

  #acknowledgedDelete(operation: WriteOperation, claim: Claim | undefined, result: Result): void {
    const guarantee = 'acknowledged writes are committed'
    if (claim === undefined || claim.record.version !== result.version) {
      const what = `a delete was acknowledged with version ${result.version}, but etcd committed ${describe(claim?.record)}`
      this.#reportOf(operation, guarantee, what)
      return
    }
    if (claim.isAcknowledged) {
      const what = `two deletes were acknowledged with version ${result.version}`
      this.#reportOf(operation, guarantee, what)
    }
    claim.isAcknowledged = true
    const { before } = claim
    if (!before.body.equals(result.body)) {
      const what = `a delete was acknowledged with another last state than ${describe(before)}`
      this.#reportOf(operation, guarantee, what)
    }
  }

  /** The write failed, or its process ended (`failure` undefined). */
  failed(operation: WriteOperation, failure: Failure | undefined): void {
    operation.close()
    const endedAt = operation.view.world.now()
    this.#journal.add(() => this.#checkFailed(operation, failure, endedAt))
  }

  #checkFailed(operation: WriteOperation, failure: Failure | undefined, endedAt: number): void {
    const { committed } = operation
    const claim = this.#claimOf(operation)
    if (failure === undefined || isUnknown(failure.kind)) {
      operation.endedAt = endedAt
      if (claim !== undefined) claim.isExplained = true
      if (committed !== undefined || claim !== undefined) this.#drop(operation)
      return
    }
    if (committed !== undefined) {
      const what = `refused (${describeFailure(failure)}), but etcd committed ${describe(committed)}`
      this.#reportOf(operation, 'refused writes are never applied', what)
    }
    this.#release(operation, `refused (${describeFailure(failure)})`)
    this.#drop(operation)
  }

  /** The operation did not make the delete that it could have made: one of the others did. */
  #release(operation: WriteOperation, why: string): void {
    const { claim } = operation
    if (claim === undefined) return
    operation.claim = undefined
    claim.open--
    if (claim.open > 0 || claim.isAcknowledged || claim.isExplained) return
    const what = `${why}, but only it can have made ${describe(claim.record)}`
    this.#reportOf(operation, 'refused writes are never applied', what)
  }

  /** A write that decided to write nothing, and returned the state. */
  unchanged(operation: WriteOperation): void {
    operation.close()
    this.#journal.add(() => {
      if (operation.committed !== undefined) {
        const what = `it wrote nothing, but etcd committed ${describe(operation.committed)}`
        this.#reportOf(operation, 'refused writes are never applied', what)
      }
      this.#drop(operation)
    })
  }

  /** Forgets writes with an unknown outcome that cannot be in any queue any more. */
  forgetOld(now: number): void {
    for (const operation of this.#pending.values()) {
      if (operation.startedAt > now - unknownMsMax) return
      if (operation.endedAt !== undefined) this.#drop(operation)
    }
  }

  #drop(operation: WriteOperation): void {
    this.#pending.delete(operation.id)
    const { path, verb } = operation
    if (verb !== 'delete' || path === undefined) return
    const others = this.#deletes.get(path)
    if (others === undefined) return
    const at = others.indexOf(operation)
    if (at >= 0) others.splice(at, 1)
    if (others.length === 0) this.#deletes.delete(path)
  }

  #report(guarantee: string, what: string, record: ChangeRecord): void {
    const lineage = this.#truth.current
    this.#reporter.report(guarantee, what, [
      `committed: ${describe(record)}`,
      `it replaced: ${describe(record.before)}`,
      ...historyOf(lineage, record.path),
    ])
  }

  #reportOf(operation: WriteOperation, guarantee: string, what: string): void {
    const path = operation.path ?? operation.committed?.path
    this.#reporter.report(guarantee, what, [
      operation.describe(),
      `decided on version ${operation.basedVersion} of operation ${operation.basedOperation}`,
      ...(path === undefined ? [] : historyOf(this.#truth.current, path)),
    ])
  }
}
