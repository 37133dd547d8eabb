import type { PlannedPolicy } from './policies.ts'

/** One policy, from the moment it was written to the file. */
interface Period {
  readonly policy: PlannedPolicy
  readonly writtenAt: number
  /** The time since which every replica uses it; undefined while some may still use the one before. */
  knownAt: number | undefined
}

/** Deletes of the policy before may still be on their way to etcd, and to the witness. */
const WAKE_MS = 1_000

/** Which policies were in force when. */
export class Reign {
  readonly #periods: Period[] = []

  wrote(policy: PlannedPolicy): void {
    this.#periods.push({ policy, writtenAt: performance.now(), knownAt: undefined })
  }

  known(): void {
    const last = this.#periods.at(-1)
    if (last !== undefined) last.knownAt ??= performance.now()
  }

  /** All policies by which a delete that is seen at this time may have been decided. */
  possible(at: number): readonly PlannedPolicy[] {
    return this.#periods
      .filter(({ writtenAt }, index) => {
        const endAt = this.#periods[index + 1]?.knownAt ?? Number.POSITIVE_INFINITY
        return writtenAt <= at && at <= endAt + WAKE_MS
      })
      .map(({ policy }) => policy)
  }

  /** The newest policy, if every replica uses it. */
  get sure(): { readonly policy: PlannedPolicy; readonly since: number } | undefined {
    const last = this.#periods.at(-1)
    if (last?.knownAt === undefined) return undefined
    return { policy: last.policy, since: last.knownAt }
  }
}
