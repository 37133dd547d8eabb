/**
 * Is there an order of the operations on one key that a single register could have gone through,
 * with every operation between its call and its response?
 *
 * The search is that of Wing and Gong: of the operations that may come next (no other one got its
 * response before they were called) take one that fits the state, continue, and backtrack when
 * stuck. The responses of a store with versions contain so much information that hardly anything is
 * left to try:
 *
 * - Writes whose version is known, and lists, can only be in the order of their versions. They form
 *   a chain, and of the chain only the next link is a candidate.
 * - A read that fits the current state may be taken now: it changes nothing, so any order that has
 *   it later has an equivalent with it here.
 * - A put with an unknown result whose value was never read need not have been applied: no later
 *   operation was based on it, or its response would have contained the value.
 * - A delete with an unknown result fits one state only, the one it was based on; of several, the
 *   one called first is as good as any. It is the only choice: now, or not yet. A wrong choice
 *   meets a link that does not fit before the next choice comes, so the work stays close to linear,
 *   and no visited states have to be remembered.
 */
import {
  describeOperation,
  describeSeen,
  type GetOperation,
  type ListOperation,
  type Operation,
  type Seen,
  type WriteOperation,
} from './history.ts'

/** A step of the register, from one operation. */
interface Step {
  readonly operation: Operation
  readonly calledAt: number
  /** Infinity for an operation with an unknown result. */
  readonly returnedAt: number
  /** The required state of the key; for an unknown delete too. */
  readonly needs: Seen
  /** The state of the key after it. */
  readonly leaves: Seen
  /** Its place in the order of versions, if it has one. */
  readonly position: number | undefined
}

export interface KeyOperations {
  readonly key: string
  readonly writes: readonly WriteOperation[]
  readonly gets: readonly GetOperation[]
  readonly lists: readonly ListOperation[]
  readonly versionOfValue: ReadonlyMap<string, number>
}

/** Undefined when there is such an order; else the reason why not. */
export function findFault(operations: KeyOperations): string | undefined {
  return new Search(stepsOf(operations)).run()
}

/** The progress of a search. Steps before `firstRead` and `firstOpen` have been taken. */
interface Place {
  readonly state: Seen
  /** The next link of the chain. */
  readonly link: number
  readonly firstRead: number
  readonly firstOpen: number
}

class Search {
  readonly #chain: readonly Step[]
  readonly #reads: readonly Step[]
  readonly #deletes: readonly Step[]
  readonly #byReturn: readonly Step[]
  readonly #taken = new Set<Step>()
  #deepest = -1
  #fault = ''

  constructor(steps: readonly Step[]) {
    const byCall = steps.toSorted((a, b) => a.calledAt - b.calledAt)
    this.#chain = byCall
      .filter((step) => step.position !== undefined)
      .sort((a, b) => (a.position ?? 0) - (b.position ?? 0))
    const loose = byCall.filter((step) => step.position === undefined)
    this.#reads = loose.filter((step) => step.returnedAt !== Number.POSITIVE_INFINITY)
    this.#deletes = loose.filter((step) => step.returnedAt === Number.POSITIVE_INFINITY)
    this.#byReturn = steps.toSorted((a, b) => a.returnedAt - b.returnedAt)
  }

  run(): string | undefined {
    const isFound = this.#goOn({ state: undefined, link: 0, firstRead: 0, firstOpen: 0 })
    return isFound ? undefined : this.#fault
  }

  /** Follows the chain as long as there is no choice; each choice starts its own search. */
  #goOn(from: Place): boolean {
    const trail: Step[] = []
    let place = from
    for (;;) {
      place = this.#absorbReads(place, trail)
      const deadline = this.#deadline(place)
      const next = this.#chain[place.link]
      if (deadline === Number.POSITIVE_INFINITY && next === undefined) return true
      if (this.#isDeletedNow(place, deadline)) return true
      if (next === undefined || !fits(next, place.state, deadline)) {
        this.#stuck(place)
        for (const step of trail) this.#taken.delete(step)
        return false
      }
      this.#taken.add(next)
      trail.push(next)
      place = { ...place, state: next.leaves, link: place.link + 1 }
    }
  }

  /** Whether everything can be explained by an unknown delete that was applied here. */
  #isDeletedNow(place: Place, deadline: number): boolean {
    const gone = this.#deletes.find((step) => fits(step, place.state, deadline))
    if (gone === undefined) return false
    this.#taken.add(gone)
    if (this.#goOn({ ...place, state: undefined })) return true
    this.#taken.delete(gone)
    return false
  }

  /**
   * The first response time of the remaining steps: a step that was called later must wait for it.
   */
  #deadline({ firstOpen }: Place): number {
    return this.#byReturn[firstOpen]?.returnedAt ?? Number.POSITIVE_INFINITY
  }

  /** Takes every read that may come now and fits, until there is none. */
  #absorbReads(place: Place, trail: Step[]): Place {
    let { firstRead, firstOpen } = place
    for (;;) {
      while (this.#isTaken(this.#byReturn[firstOpen])) firstOpen++
      while (this.#isTaken(this.#reads[firstRead])) firstRead++
      const reached = { ...place, firstRead, firstOpen }
      const fitting = this.#fittingReads(reached)
      if (fitting.length === 0) return reached
      for (const read of fitting) this.#taken.add(read)
      trail.push(...fitting)
    }
  }

  #fittingReads(place: Place): readonly Step[] {
    const deadline = this.#deadline(place)
    const fitting: Step[] = []
    for (let index = place.firstRead; index < this.#reads.length; index++) {
      const read = this.#reads[index]
      if (read === undefined || read.calledAt > deadline) break
      if (!this.#taken.has(read) && fits(read, place.state, deadline)) fitting.push(read)
    }
    return fitting
  }

  #isTaken(step: Step | undefined): boolean {
    return step !== undefined && this.#taken.has(step)
  }

  /** Of all dead ends, the one that explained most is reported. */
  #stuck(place: Place): void {
    if (this.#taken.size <= this.#deepest) return
    this.#deepest = this.#taken.size
    const due = this.#byReturn[place.firstOpen]
    const next = this.#chain[place.link]
    const lines = [`it holds ${describeSeen(place.state)}`]
    if (due !== undefined) lines.push(`to be explained first: ${describeOperation(due.operation)}`)
    if (next !== undefined && next !== due) {
      lines.push(`next by version: ${describeOperation(next.operation)}`)
    }
    this.#fault = lines.join('; ')
  }
}

/**
 * No remaining step got its response before this one was called, and the key has the required
 * state.
 */
function fits(step: Step, state: Seen, deadline: number): boolean {
  return step.calledAt <= deadline && isSame(step.needs, state)
}

function isSame(a: Seen, b: Seen): boolean {
  return a?.version === b?.version && a?.value === b?.value
}

function stepsOf({ key, writes, gets, lists, versionOfValue }: KeyOperations): readonly Step[] {
  const steps: Step[] = []
  for (const operation of writes) {
    const step = stepOfWrite(operation, versionOfValue)
    if (step !== undefined) steps.push(step)
  }
  for (const operation of gets) steps.push(reading(operation, operation.seen))
  for (const operation of lists) {
    steps.push({ ...reading(operation, operation.items.get(key)), position: operation.version })
  }
  return steps
}

/** Undefined for a write that was not applied, or need not have been. */
function stepOfWrite(
  operation: WriteOperation,
  versionOfValue: ReadonlyMap<string, number>,
): Step | undefined {
  const { value, outcome, calledAt, returnedAt } = operation
  if (outcome.result === 'failed') return undefined
  if (outcome.result === 'refused') return reading(operation, outcome.seen)
  const needs = outcome.base
  if (outcome.result === 'applied') {
    const { version } = outcome
    const leaves = value === undefined ? undefined : { value, version }
    return { operation, calledAt, returnedAt, needs, leaves, position: version }
  }
  const late = { operation, calledAt, returnedAt: Number.POSITIVE_INFINITY, needs }
  if (value === undefined) {
    if (needs === undefined) return undefined
    return { ...late, leaves: undefined, position: undefined }
  }
  const version = versionOfValue.get(value)
  return version === undefined
    ? undefined
    : { ...late, leaves: { value, version }, position: version }
}

function reading(operation: Operation, seen: Seen): Step {
  const { calledAt, returnedAt } = operation
  return { operation, calledAt, returnedAt, needs: seen, leaves: seen, position: undefined }
}
