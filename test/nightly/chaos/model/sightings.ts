/**
 * What the responses of a run say about each change, taken together: a value is one change, a
 * change has one version, and only values that were written, and not rejected, can be read.
 */
import type { Operation, Seen, Violation, WriteOperation } from './history.ts'

/** A value that was read: where, and the earliest time of a response with it. */
interface Sighting {
  readonly key: string
  readonly value: string
  readonly version: number
  readonly at: number
  readonly by: number
}

export interface Sightings {
  /** Versions of all puts that are known to have been applied, by value. */
  readonly versionOfValue: ReadonlyMap<string, number>
  readonly violations: readonly Violation[]
}

export function gatherSightings(operations: readonly Operation[]): Sightings {
  const evidence = new Evidence()
  for (const operation of operations) if (operation.type === 'write') evidence.addWrite(operation)
  for (const sighting of sightingsOf(operations)) evidence.addSighting(sighting)
  return evidence
}

class Evidence implements Sightings {
  readonly versionOfValue = new Map<string, number>()
  readonly violations: Violation[] = []
  readonly #puts = new Map<string, WriteOperation>()
  readonly #changeAt = new Map<number, string>()

  addWrite(operation: WriteOperation): void {
    const { id, key, value, outcome } = operation
    if (value !== undefined) this.#puts.set(value, operation)
    if (outcome.result !== 'applied') return
    const { version, base } = outcome
    if (value !== undefined) this.versionOfValue.set(value, version)
    this.#noteChange(version, `${key}=${value ?? `deleted by #${id}`}`)
    if (base !== undefined && base.version >= version) {
      this.#report('version-order', `#${id} has a version no later than what it replaced`)
    }
  }

  /** Called after all writes have been added. */
  addSighting({ key, value, version, at, by }: Sighting): void {
    const put = this.#puts.get(value)
    if (put === undefined || put.key !== key) {
      this.#report('phantom', `#${by} saw ${value} in ${key}, where no operation put it`)
      return
    }
    const { result } = put.outcome
    if (result === 'refused' || result === 'failed') {
      this.#report('applied-though-refused', `#${by} saw ${value}, whose put #${put.id} ${result}`)
    }
    if (at < put.calledAt) {
      this.#report('from-the-future', `#${by} saw ${value} before #${put.id} was to put it`)
    }
    const known = this.versionOfValue.get(value)
    if (known === undefined) this.versionOfValue.set(value, version)
    else if (known !== version) {
      this.#report('applied-twice', `#${by} saw ${value} at ${version}; it happened at ${known}`)
    }
    this.#noteChange(version, `${key}=${value}`)
  }

  #noteChange(version: number, change: string): void {
    const known = this.#changeAt.get(version)
    if (known === undefined) this.#changeAt.set(version, change)
    else if (known !== change) {
      this.#report('version-shared', `version ${version} is both ${known} and ${change}`)
    }
  }

  #report(kind: string, message: string): void {
    this.violations.push({ kind, message })
  }
}

function* sightingsOf(operations: readonly Operation[]): Generator<Sighting> {
  for (const operation of operations) {
    const { id: by, returnedAt: at } = operation
    if (operation.type === 'list') {
      for (const [key, { value, version }] of operation.items) yield { key, value, version, at, by }
      continue
    }
    const seen = operation.type === 'get' ? operation.seen : seenByWrite(operation)
    if (seen !== undefined) yield { key: operation.key, ...seen, at, by }
  }
}

function seenByWrite({ outcome }: WriteOperation): Seen {
  switch (outcome.result) {
    case 'applied':
    case 'unknown':
      return outcome.base
    case 'refused':
      return outcome.seen
    case 'failed':
      return undefined
  }
}
