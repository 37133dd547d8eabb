/** The lists of a simulated origin: pages of one version, until they expire. */
import { OriginError, type OriginPage } from '../../../src/mirror/origin.ts'
import type { OriginEvent } from '../../../src/registry/origin-version.ts'
import type { OriginModel, OriginState } from './origin-model.ts'

const snapshotsMax = 8
const bytesUsual = 600

export interface PageRequest {
  readonly namespace: string | undefined
  readonly limit: number
  readonly continueToken: string | undefined
}

export class OriginLists {
  readonly #model: OriginModel
  /** What is left of lists whose pages may be requested, by their token. */
  readonly #snapshots = new Map<string, readonly OriginState[]>()
  #tokens = 0

  constructor(model: OriginModel) {
    this.#model = model
  }

  /** All further pages get 410. */
  expireAll(): void {
    this.#snapshots.clear()
  }

  page({ namespace, limit, continueToken }: PageRequest): OriginPage | OriginError {
    const model = this.#model
    if (continueToken !== undefined) return this.#nextPage(continueToken, limit)
    const [first, end] = model.rangeOf(namespace)
    const items: OriginState[] = []
    let key = first
    for (; key < end && items.length < limit; key++) {
      const state = model.current(key)
      if (state !== undefined) items.push(state)
    }
    const rest: OriginState[] = []
    for (; key < end; key++) {
      const state = model.current(key)
      if (state === undefined) continue
      rest.push(state)
      // The version is all that such a request wants.
      if (limit === 1) break
    }
    if (limit > 1) return this.#pageWith(items, rest, model.version)
    const page = this.#pageWith(items, [], model.version)
    return rest.length === 0 ? page : { ...page, continueToken: 'unused' }
  }

  #nextPage(token: string, limit: number): OriginPage | OriginError {
    const rest = this.#snapshots.get(token)
    const version = Number(token.slice(token.indexOf(' ') + 1))
    if (rest === undefined || version < this.#model.compacted) return expired()
    return this.#pageWith(rest.slice(0, limit), rest.slice(limit), version)
  }

  #pageWith(
    items: readonly OriginState[],
    rest: readonly OriginState[],
    version: number,
  ): OriginPage {
    const continueToken = rest.length === 0 ? undefined : `${++this.#tokens} ${version}`
    if (continueToken !== undefined) {
      this.#snapshots.set(continueToken, rest)
      const [oldest] = this.#snapshots.keys()
      if (this.#snapshots.size > snapshotsMax && oldest !== undefined)
        this.#snapshots.delete(oldest)
    }
    return {
      items: items.map((state) => itemOf(this.#model, state, state.version)),
      resourceVersion: String(version),
      continueToken,
    }
  }
}

export function itemOf(model: OriginModel, state: OriginState, version: number): OriginEvent {
  return { event: model.eventOf(state), resourceVersion: String(version), bytes: bytesUsual }
}

export function expired(): OriginError {
  return new OriginError('expired', 'the origin responded 410: too old resource version')
}
