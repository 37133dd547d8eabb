import { ownText } from '../../lib/text/own-text.ts'
import type { RegardedKind } from '../../storage/event-fields.ts'

/** At most about 800 KiB, given the bounds on names. */
const KINDS_MAX = 2_000
const KIND = /^[A-Z][A-Za-z0-9]{0,62}$/
const API_VERSION =
  /^(?:([a-z0-9](?:[-a-z0-9.]{0,188}[a-z0-9])?)\/)?(v[1-9]\d?(?:(?:alpha|beta)[1-9]\d?)?)$/

/**
 * The kinds of the objects that the events of each cluster are about (`regarding`), since the start.
 * When there are too many, the least recently used one is evicted. Invalid names of kinds and
 * versions are ignored.
 */
export class RegardedKinds {
  /** Least recently used first. */
  readonly #kinds = new Map<string, RegardedKind & { readonly cluster: string }>()
  #last = { cluster: '', kind: '', apiVersion: '' }
  /** Keyed by cluster. */
  readonly #listed = new Map<string, readonly RegardedKind[]>()

  /** Called with every event; most have the same kind as the one before. */
  note(
    cluster: string,
    { kind, apiVersion }: { readonly kind: string; readonly apiVersion: string },
  ): void {
    const last = this.#last
    if (kind === last.kind && apiVersion === last.apiVersion && cluster === last.cluster) return
    this.#last = { cluster, kind, apiVersion }
    const key = `${apiVersion} ${kind} ${cluster}`
    const known = this.#kinds.get(key)
    if (known !== undefined) {
      this.#kinds.delete(key)
      this.#kinds.set(key, known)
      return
    }
    const [matched, group = '', version = ''] = API_VERSION.exec(apiVersion) ?? []
    if (matched === undefined || !KIND.test(kind)) return
    if (this.#kinds.size >= KINDS_MAX) this.#kinds.delete(this.#kinds.keys().next().value ?? '')
    // Copies: they may be parts of a whole request.
    const names = { group: ownText(group), version: ownText(version), kind: ownText(kind) }
    this.#kinds.set(key, { cluster, ...names })
    this.#listed.clear()
  }

  /** Sorted the same way on every replica; returns the same array until it changes. */
  list(cluster: string): readonly RegardedKind[] {
    const known = this.#listed.get(cluster)
    if (known !== undefined) return known
    // A client can ask for any cluster.
    if (this.#listed.size >= KINDS_MAX) this.#listed.clear()
    const listed = [...this.#kinds]
      .filter(([, kind]) => kind.cluster === cluster)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([, { group, version, kind }]) => ({ group, version, kind }))
    this.#listed.set(cluster, listed)
    return listed
  }
}
