import type { Random } from '../traffic/random.ts'
import type { Operation, Seen, WriteOutcome } from './history.ts'

/**
 * A history of a simulated correct store: concurrent workers on a few keys, lost responses, writes
 * that are applied after their caller gave up, several changes in one revision.
 */
export function simulateHistory(
  random: Random,
  options: { readonly operations: number; readonly keys: number; readonly workers: number },
): readonly Operation[] {
  const store = new SimulatedStore(random)
  const agenda: Planned[] = []
  const workers = Array.from({ length: options.workers }, () => random.between(0, 10))
  for (let id = 0; id < options.operations; id++) {
    const worker = random.below(workers.length)
    const calledAt = workers[worker] ?? 0
    const actsAt = calledAt + random.between(0.1, 10)
    const returnedAt = actsAt + random.between(0.1, 10)
    workers[worker] = returnedAt + random.between(0.1, 3)
    const key = `k${random.below(options.keys)}`
    agenda.push({ id, key, calledAt, actsAt, returnedAt })
  }
  agenda.sort((a, b) => a.actsAt - b.actsAt)
  for (const planned of agenda) store.perform(planned)
  return store.finish()
}

interface Planned {
  readonly id: number
  readonly key: string
  readonly calledAt: number
  /** When the store applies it: a moment between call and response. */
  readonly actsAt: number
  readonly returnedAt: number
}

/**
 * A write whose caller got an unknown result, and that is applied later if nothing came between.
 */
interface Late {
  readonly at: number
  readonly key: string
  readonly value: string | undefined
  readonly base: Seen
}

class SimulatedStore {
  readonly #random: Random
  readonly #states = new Map<string, NonNullable<Seen>>()
  readonly #history: Operation[] = []
  #late: Late[] = []
  #revision = 1
  #index = -1
  #changedInRevision = new Set<string>()

  constructor(random: Random) {
    this.#random = random
  }

  perform(planned: Planned): void {
    this.#performLate(planned.actsAt)
    const { id, key, calledAt, returnedAt } = planned
    const timed = { id, calledAt, returnedAt }
    const dice = this.#random.next()
    if (dice < 0.05) {
      this.#beginRevision()
      const version = (this.#revision - 1) * 1000 + 999
      this.#history.push({ ...timed, type: 'list', version, items: new Map(this.#states) })
    } else if (dice < 0.25) {
      const seen = this.#states.get(key)
      this.#history.push({ ...timed, type: 'get', key, seen })
    } else {
      this.#write(planned, dice)
    }
  }

  finish(): readonly Operation[] {
    this.#performLate(Number.POSITIVE_INFINITY)
    return this.#history
  }

  #write(planned: Planned, dice: number): void {
    const { id, key, calledAt, returnedAt } = planned
    const current = this.#states.get(key)
    const isDelete = dice > 0.8
    const value = isDelete ? undefined : `v${id}`
    // A delete needs an existing key; some puts need a free key and some do not.
    const isRefused = isDelete ? current === undefined : dice < 0.5 && current !== undefined
    const outcome = this.#outcome({ planned, current, value, isRefused })
    this.#history.push({ type: 'write', id, key, value, calledAt, returnedAt, outcome })
  }

  #outcome(write: {
    readonly planned: Planned
    readonly current: Seen
    readonly value: string | undefined
    readonly isRefused: boolean
  }): WriteOutcome {
    const { planned, current, value } = write
    const { key, actsAt } = planned
    const dice = this.#random.next()
    if (dice < 0.05) return { result: 'failed' }
    if (write.isRefused) return { result: 'refused', seen: current }
    if (dice < 0.1) return { result: 'unknown', base: current }
    if (dice < 0.2) {
      const at = actsAt + this.#random.between(0, 60)
      this.#late.push({ at, key, value, base: current })
      return { result: 'unknown', base: current }
    }
    const version = this.#change(key, value)
    // Now and then the write is applied and only the response is lost.
    if (dice < 0.25) return { result: 'unknown', base: current }
    return { result: 'applied', base: current, version }
  }

  #performLate(until: number): void {
    const due = this.#late.filter((late) => late.at <= until).sort((a, b) => a.at - b.at)
    this.#late = this.#late.filter((late) => late.at > until)
    for (const { key, value, base } of due) {
      if (this.#states.get(key)?.version === base?.version) this.#change(key, value)
    }
  }

  #change(key: string, value: string | undefined): number {
    // A key changes once in a revision, as in etcd.
    if (this.#random.chance(0.5) || this.#changedInRevision.has(key)) this.#beginRevision()
    this.#index++
    this.#changedInRevision.add(key)
    const version = this.#revision * 1000 + this.#index
    if (value === undefined) this.#states.delete(key)
    else this.#states.set(key, { value, version })
    return version
  }

  #beginRevision(): void {
    this.#revision++
    this.#index = -1
    this.#changedInRevision = new Set()
  }
}
