/** Which policy is in the file, and which replica uses which: known exactly in a simulation. */
import type { RetentionPolicy } from '../../../src/retention/policy.ts'
import type { PolicySource } from '../../../src/retention/policy-file.ts'
import { type PlannedPolicy, type PolicyStep, productionPolicy } from './policy-plan.ts'

interface Period {
  readonly planned: PlannedPolicy
  readonly policy: RetentionPolicy
  /** When a replica used it last; its processes may have sent deletes until then. */
  leftAt: number
  readonly users: Set<number>
}

export class PolicyReign {
  readonly #periods: readonly Period[]
  readonly #now: () => number
  #inFile = 0
  #changedAt = 0
  #sureSince: number | undefined = 0

  constructor(steps: readonly PolicyStep[], now: () => number) {
    this.#now = now
    this.#periods = steps.map(({ policy: planned }) => ({
      planned,
      policy: productionPolicy(planned),
      leftAt: Number.NEGATIVE_INFINITY,
      users: new Set(),
    }))
  }

  /** The policy in the file. */
  get newest(): PlannedPolicy {
    return this.#at(this.#inFile).planned
  }

  /** The one before it. */
  get previous(): PlannedPolicy {
    return this.#at(Math.max(0, this.#inFile - 1)).planned
  }

  /** The time since which every running replica uses the newest policy; undefined if one does not. */
  get sureSince(): number | undefined {
    return this.#sureSince
  }

  /** The policies by which a change that is committed now may have been decided this long ago. */
  possible(wakeMs: number): readonly PlannedPolicy[] {
    const since = this.#now() - wakeMs
    const found: PlannedPolicy[] = []
    for (const { planned, users, leftAt } of this.#periods) {
      if (users.size > 0 || leftAt >= since) found.push(planned)
    }
    return found.length === 0 ? [this.newest] : found
  }

  /** The file has the policy with this number from now on. */
  wrote(index: number): void {
    this.#inFile = index
    this.#changedAt = this.#now()
    this.#updateSure()
  }

  /** What a process of a replica uses: the file as it is now, and later after each `reload`. */
  open(replica: number): PolicyFileCopy {
    this.#use(replica, this.#inFile)
    return new PolicyFileCopy(
      () => this.#at(this.#inFile).policy,
      () => this.#use(replica, this.#inFile),
    )
  }

  /** The process of the replica has ended. */
  ended(replica: number): void {
    this.#leave(replica)
    this.#updateSure()
  }

  #use(replica: number, index: number): void {
    this.#leave(replica)
    this.#at(index).users.add(replica)
    this.#updateSure()
  }

  #leave(replica: number): void {
    for (const period of this.#periods) {
      if (period.users.delete(replica)) period.leftAt = this.#now()
    }
  }

  #updateSure(): void {
    const isSure = this.#periods.every(({ users }, index) => {
      return index === this.#inFile || users.size === 0
    })
    if (!isSure) this.#sureSince = undefined
    else this.#sureSince = Math.max(this.#changedAt, this.#sureSince ?? this.#now())
  }

  #at(index: number): Period {
    const period = this.#periods[index]
    if (period === undefined) throw new RangeError(`no policy ${index}`)
    return period
  }
}

/** What one process has read from the file. */
export class PolicyFileCopy implements PolicySource {
  policy: RetentionPolicy
  readonly #read: () => RetentionPolicy
  readonly #onUse: () => void
  readonly #listeners: (() => void)[] = []

  constructor(read: () => RetentionPolicy, onUse: () => void) {
    this.policy = read()
    this.#read = read
    this.#onUse = onUse
  }

  onChange(listener: () => void): void {
    this.#listeners.push(listener)
  }

  /** Must be called in the process. */
  reload(): void {
    const policy = this.#read()
    if (policy === this.policy) return
    this.policy = policy
    this.#onUse()
    for (const listener of this.#listeners) listener()
  }
}
