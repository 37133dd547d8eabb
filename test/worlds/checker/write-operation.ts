/** One write of a client, and what is known of it. */
import type { Journal } from './journal.ts'
import type { ChangeRecord } from './lineage.ts'
import { longestMs, Operation, type ReplicaView } from './operations.ts'
import { tagOf } from './stored-text.ts'

export type Verb = 'create' | 'update' | 'delete'

/** The operation whose state a write is based on is not known. */
export const anyOperation = -1
/** A delete commit that clients may have caused. */
export interface Claim {
  readonly record: ChangeRecord
  /** The state that was deleted. */
  readonly before: ChangeRecord
  /** Candidates whose outcome may still be that they did it. */
  open: number
  isAcknowledged: boolean
  /** It needs no client: it was due, or a client does not know whether it did it. */
  isExplained: boolean
}

export class WriteOperation extends Operation {
  readonly id: number
  readonly verb: Verb
  /** Undefined until the server has generated the name. */
  readonly path: string | undefined
  /** The bytes to write, if the client knows them. */
  body: Buffer | undefined
  /** The state that it was decided on: -1 not known, 0 none. */
  basedVersion = -1
  basedOperation: number = anyOperation
  /** The version that the client requires, if it does. */
  required: number | undefined
  committed: ChangeRecord | undefined
  claim: Claim | undefined
  endedAt: number | undefined
  readonly #journal: Journal

  constructor(
    view: ReplicaView,
    journal: Journal,
    write: { readonly id: number; readonly verb: Verb; readonly path: string | undefined },
  ) {
    super(view, write.verb, write.verb === 'create' ? longestMs.create : longestMs.update)
    this.#journal = journal
    this.id = write.id
    this.verb = write.verb
    this.path = write.path
  }

  /** Called by every run of the decision, with the state that it decides on. */
  decidesOn(current: { readonly version: number; readonly body: Buffer } | undefined): void {
    const version = current?.version ?? 0
    const operation = current === undefined ? 0 : tagOf(current.body).operation
    this.#journal.add(() => {
      this.basedVersion = version
      this.basedOperation = operation
    })
  }

  /** A precondition on the version that production code checks: it replaces exactly that state. */
  requires(version: number): void {
    this.required = version
    if (this.verb === 'update') this.basedVersion = version
  }

  override describe(): string {
    return `operation ${this.id}: ${super.describe()}, of ${this.path ?? 'a generated name'}`
  }
}

/** Returns whether a commit replaced the state that the write was decided on. */
export function isBasedOn(operation: WriteOperation, record: ChangeRecord): boolean {
  const { before } = record
  const replaced = before === undefined || before.isDelete ? undefined : before
  if (operation.verb === 'create') return replaced === undefined
  return operation.basedVersion < 0 || isDecidedOn(operation, replaced)
}

/** Returns whether the last decision of the write was on this state; undefined: on no event. */
export function isDecidedOn(operation: WriteOperation, state: ChangeRecord | undefined): boolean {
  const { basedVersion, basedOperation } = operation
  if (basedVersion !== (state?.version ?? 0)) return false
  return basedOperation === anyOperation || basedOperation === (state?.operation ?? 0)
}
