/**
 * How many events were deleted, and why, since the first sweeper of this etcd. Stored as one JSON
 * object of some 40 bytes per name, or 60 KB when full. For example
 *
 *     {"replica":"host/42","policy":"5d41402a","expired":{"warnings":12},"evicted":{"shop":7},
 *      "clusters":{"prod":7},"namespaces":{"prod/shop":7}}
 */
import { isObject, memberOf, parsedJson, textOf } from '../../lib/json.ts'

/** Counts names beyond the limit. No rule, budget, cluster or namespace can have this name. */
export const OTHER = '_other'

/** Names come from policy files and namespaces, which may change endlessly. */
const NAMES_MAX = { expired: 300, evicted: 300, clusters: 300, namespaces: 1_000 } as const

export type TotalKind = keyof typeof NAMES_MAX
export const TOTAL_KINDS = Object.keys(NAMES_MAX) as readonly TotalKind[]

export class Totals {
  readonly #counts: Readonly<Record<TotalKind, Map<string, number>>> = {
    // Expired events by rule; evicted events by budget, by cluster and by namespace.
    expired: new Map(),
    evicted: new Map(),
    clusters: new Map(),
    namespaces: new Map(),
  }

  get(kind: TotalKind, name: string): number {
    return this.#counts[kind].get(name) ?? 0
  }

  total(kind: TotalKind): number {
    return [...this.#counts[kind].values()].reduce((sum, count) => sum + count, 0)
  }

  of(kind: TotalKind): ReadonlyMap<string, number> {
    return this.#counts[kind]
  }

  get isEmpty(): boolean {
    return TOTAL_KINDS.every((kind) => this.#counts[kind].size === 0)
  }

  add(kind: TotalKind, name: string, count = 1): void {
    const counts = this.#counts[kind]
    const isNew = !counts.has(name)
    const counted = isNew && counts.size >= NAMES_MAX[kind] ? OTHER : name
    counts.set(counted, (counts.get(counted) ?? 0) + count)
  }

  /** Whether some names are counted under `OTHER`. */
  hasOthers(kind: TotalKind): boolean {
    return this.#counts[kind].has(OTHER)
  }

  /** When full, moves the counts of names that are no longer needed to `OTHER`. */
  dropUnused(kind: TotalKind, isNeeded: (name: string) => boolean): void {
    const counts = this.#counts[kind]
    if (counts.size < NAMES_MAX[kind]) return
    for (const [name, count] of [...counts]) {
      if (name === OTHER || isNeeded(name)) continue
      counts.delete(name)
      counts.set(OTHER, (counts.get(OTHER) ?? 0) + count)
    }
  }

  plus(others: Totals): Totals {
    const sum = new Totals()
    for (const each of [this, others]) {
      for (const kind of TOTAL_KINDS) {
        for (const [name, count] of each.of(kind)) sum.add(kind, name, count)
      }
    }
    return sum
  }
}

/** The totals, who wrote them, and under which policy. */
export interface AccountEntry {
  readonly replica: string
  /** The policy's fingerprint. */
  readonly policy: string
  readonly totals: Totals
}

export function encodeAccount({ replica, policy, totals }: AccountEntry): Buffer {
  const counts = TOTAL_KINDS.map((kind) => [kind, Object.fromEntries(totals.of(kind))])
  return Buffer.from(JSON.stringify({ replica, policy, ...Object.fromEntries(counts) }))
}

/** Undefined when the value is not an account. Skips counts that are not positive integers. */
export function decodeAccount(value: Buffer): AccountEntry | undefined {
  const tree = parsedJson(value)
  if (tree === undefined || !isObject(tree)) return undefined
  const totals = new Totals()
  for (const kind of TOTAL_KINDS) {
    const counts = memberOf(tree, kind)
    if (counts === undefined || !isObject(counts)) continue
    for (const [name, count] of Object.entries(counts)) {
      if (Number.isSafeInteger(count) && (count as number) > 0) {
        totals.add(kind, name, count as number)
      }
    }
  }
  return { replica: textOf(tree, 'replica'), policy: textOf(tree, 'policy'), totals }
}
