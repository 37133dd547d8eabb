import type { Operation, Seen, Violation } from '../model/history.ts'

/** A read that was content with an older state, or wanted one; judged by the history of etcd. */
export type OldRead = { readonly id: number } & (
  | {
      readonly type: 'get'
      readonly key: string
      readonly notOlderThan: number
      readonly seen: Seen
    }
  | {
      readonly type: 'list'
      readonly notOlderThan: number
      readonly version: number
      readonly items: ReadonlyMap<string, NonNullable<Seen>>
    }
  | {
      readonly type: 'list-at'
      readonly at: number
      readonly version: number
      readonly items: ReadonlyMap<string, NonNullable<Seen>>
    }
)

/** What traffic leaves behind. */
export class TrafficRecord {
  readonly operations: Operation[] = []
  readonly oldReads: OldRead[] = []
  /** Answers that are wrong whatever else happened. */
  readonly violations: Violation[] = []
  /** By kind and outcome, for the report. */
  readonly counts: Map<string, number> = new Map()
  /** The newest version that anybody was told of. */
  newestVersion = 0

  count(kind: string, outcome: string): void {
    const name = `${kind} ${outcome}`
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  note(version: number): void {
    this.newestVersion = Math.max(this.newestVersion, version)
  }
}
