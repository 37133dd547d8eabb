/** A refusal because of the state of an event is a consistent read of that state. */
import { StorageError } from '../../../src/storage/errors.ts'
import { Declined, type Failure } from './failures.ts'
import type { Journal } from './journal.ts'
import { type ChangeRecord, describe } from './lineage.ts'
import type { CheckOptions, ReadChecks } from './reads.ts'
import type { Reporter } from './reporter.ts'
import type { Truth } from './truth.ts'
import type { WriteOperation } from './write-operation.ts'

export class RefusalChecks {
  readonly #truth: Truth
  readonly #reporter: Reporter
  readonly #journal: Journal
  readonly #reads: ReadChecks

  constructor({ truth, reporter, journal }: CheckOptions, reads: ReadChecks) {
    this.#truth = truth
    this.#reporter = reporter
    this.#journal = journal
    this.#reads = reads
  }

  refused(operation: WriteOperation, failure: Failure): void {
    const { path } = operation
    const { kind, error } = failure
    if (path === undefined) return
    if (kind === 'missing') this.#reads.saw(operation, path, undefined)
    else if (kind === 'exists' && error instanceof StorageError && error.current !== undefined) {
      const { namespace, name } = error.current.key
      this.#reads.saw(operation, `${namespace}/${name}`, error.current)
    } else if (kind === 'exists' || kind === 'precondition') {
      this.#journal.add(() => this.#check(operation, path, failure), {
        isExplained: () => !this.#isWrong(operation, path, failure),
      })
    }
  }

  #check(operation: WriteOperation, path: string, failure: Failure): void {
    if (!this.#isWrong(operation, path, failure)) return
    const head = this.#truth.current.head(path)
    this.#reporter.report(
      'refusals are based on the newest state',
      `a write of ${path} was refused as ${failure.kind}, decided on version ${operation.basedVersion}, but all the time it was ${describe(head)}`,
      [operation.describe(), String(failure.error)],
    )
  }

  /** If the state did not change while the call ran, the refusal must fit exactly that state. */
  #isWrong(operation: WriteOperation, path: string, { kind, error }: Failure): boolean {
    const head = this.#truth.current.head(path)
    if (operation.epoch !== this.#truth.epoch || (head?.revision ?? 0) > operation.revision) {
      return false
    }
    const isThere = head !== undefined && !head.isDelete
    if (kind === 'exists') return !isThere
    return isThere && !isRefusalOf(operation, head, error instanceof Declined)
  }
}

/** Returns whether a precondition could fail on this state. */
function isRefusalOf(operation: WriteOperation, head: ChangeRecord, isDeclined: boolean): boolean {
  const { basedVersion, basedOperation, required } = operation
  if (!isDeclined && required === head.version) return false
  if (operation.verb === 'update') return true
  return basedVersion === head.version && basedOperation === head.operation
}
