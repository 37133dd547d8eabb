import type { Operation, Seen, Violation } from '../model/history.ts'

/** A read that accepts or requests an older state; checked against the history of etcd. */
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

/** The record of all traffic. */
export class TrafficRecord {
  readonly operations: Operation[] = []
  readonly oldReads: OldRead[] = []
  /** Responses that are wrong whatever else happened. */
  readonly violations: Violation[] = []
  /** Counts by kind and result, for the report. */
  readonly counts: Map<string, number> = new Map()
  /** The newest version in any response. */
  newestVersion = 0

  count(kind: string, outcome: string): void {
    const name = `${kind} ${outcome}`
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1)
  }

  note(version: number): void {
    this.newestVersion = Math.max(this.newestVersion, version)
  }
}
