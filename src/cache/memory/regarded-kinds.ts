import type { RegardedKind } from '../../storage/storage.ts'

/** With the bounds on their names, at most about 150 KiB. */
const KINDS_MAX = 500
const KIND = /^[A-Z][A-Za-z0-9]{0,62}$/
const API_VERSION =
  /^(?:([a-z0-9](?:[-a-z0-9.]{0,188}[a-z0-9])?)\/)?(v[1-9]\d?(?:(?:alpha|beta)[1-9]\d?)?)$/

/**
 * The kinds of the objects that events are about (`regarding`), since the start. When there are too
 * many, the least recently used one is evicted. Invalid names of kinds and versions are ignored.
 */
export class RegardedKinds {
  /** In the order of their last use, the most recent one last. */
  readonly #kinds = new Map<string, RegardedKind>()
  #last: { readonly kind: string; readonly apiVersion: string } = { kind: '', apiVersion: '' }
  #listed: readonly RegardedKind[] | undefined

  /** Called with every event; most have the same kind as the one before. */
  note({ kind, apiVersion }: { readonly kind: string; readonly apiVersion: string }): void {
    if (kind === this.#last.kind && apiVersion === this.#last.apiVersion) return
    this.#last = { kind, apiVersion }
    const key = `${apiVersion} ${kind}`
    const known = this.#kinds.get(key)
    if (known !== undefined) {
      this.#kinds.delete(key)
      this.#kinds.set(key, known)
      return
    }
    const [matched, group = '', version = ''] = API_VERSION.exec(apiVersion) ?? []
    if (matched === undefined || !KIND.test(kind)) return
    if (this.#kinds.size >= KINDS_MAX) this.#kinds.delete(this.#kinds.keys().next().value ?? '')
    this.#kinds.set(key, { group, version, kind })
    this.#listed = undefined
  }

  /** In the same order on every replica; returns the same array until it changes. */
  list(): readonly RegardedKind[] {
    this.#listed ??= [...this.#kinds].sort(([one], [other]) => (one < other ? -1 : 1)).map(kindOf)
    return this.#listed
  }
}

function kindOf([, kind]: readonly [string, RegardedKind]): RegardedKind {
  return kind
}
