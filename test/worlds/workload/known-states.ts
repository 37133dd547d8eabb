/** The newest state of each event that any client was told: the basis of replacing writes. */
import type { Random } from '../../support/random.ts'

export interface KnownState {
  readonly version: number
  readonly body: Buffer
}

export class KnownStates {
  readonly #states = new Map<string, KnownState & { place: number }>()
  /** The keys of `#states`, for picking one at random. */
  readonly #paths: string[] = []

  get count(): number {
    return this.#paths.length
  }

  get(path: string): KnownState | undefined {
    return this.#states.get(path)
  }

  pick(random: Random): string | undefined {
    return this.#paths[random.below(Math.max(1, this.#paths.length))]
  }

  saw(path: string, { version, body }: KnownState): void {
    const known = this.#states.get(path)
    if (known !== undefined && known.version >= version) return
    const place = known?.place ?? this.#paths.push(path) - 1
    this.#states.set(path, { version, body: Buffer.from(body), place })
  }

  /** The event was missing, or deleted by the change with this version. */
  gone(path: string, version: number = Number.POSITIVE_INFINITY): void {
    const known = this.#states.get(path)
    if (known === undefined || known.version >= version) return
    this.#states.delete(path)
    const last = this.#paths.pop()
    const moved = last === undefined ? undefined : this.#states.get(last)
    if (last === undefined || moved === undefined) return
    this.#paths[known.place] = last
    moved.place = known.place
  }

  clear(): void {
    this.#states.clear()
    this.#paths.length = 0
  }
}
