/**
 * How many events were deleted, and why, since the first sweeper of this etcd. Stored as one JSON
 * object, of some 40 bytes for each name: 60 KB when all places are taken. For example
 *
 *     {"replica":"host/42","policy":"5d41402a","expired":{"warnings":12},"evicted":{"shop":7},
 *      "clusters":{"prod":7},"namespaces":{"prod/shop":7}}
 */
import { isObject, type Json, memberOf, textOf } from '../../lib/json.ts'

/** Where names beyond the limit are counted. It cannot be the name of anything else. */
export const OTHER = '_other'

/** Names come from policy files and namespaces, and may change without end. */
const NAMES_MAX = { expired: 300, evicted: 300, clusters: 300, namespaces: 1_000 } as const

export type TotalKind = keyof typeof NAMES_MAX
export const TOTAL_KINDS = Object.keys(NAMES_MAX) as readonly TotalKind[]

export class Totals {
  readonly #counts: Readonly<Record<TotalKind, Map<string, number>>> = {
    /** Expired events by rule, and evicted events by budget, by cluster and by namespace. */
    expired: new Map(),
    evicted: new Map(),
    clusters: new Map(),
    namespaces: new Map(),
  }

  get(kind: TotalKind, name: string): number {
    return this.#counts[kind].get(name) ?? 0
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

  /** Whether what was counted for a name may be among the others. */
  hasOthers(kind: TotalKind): boolean {
    return this.#counts[kind].has(OTHER)
  }

  /** When all places are taken, names that are not needed any more are counted as others. */
  makeRoom(kind: TotalKind, isNeeded: (name: string) => boolean): void {
    const counts = this.#counts[kind]
    if (counts.size < NAMES_MAX[kind]) return
    for (const [name, count] of [...counts]) {
      if (name === OTHER || isNeeded(name)) continue
      counts.delete(name)
      counts.set(OTHER, (counts.get(OTHER) ?? 0) + count)
    }
  }

  /** A new object. */
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

/** The totals, and who has written them with which policy. */
export interface AccountEntry {
  readonly replica: string
  /** The fingerprint. */
  readonly policy: string
  readonly totals: Totals
}

export function encodeAccount({ replica, policy, totals }: AccountEntry): Buffer {
  const counts = TOTAL_KINDS.map((kind) => [kind, Object.fromEntries(totals.of(kind))])
  return Buffer.from(JSON.stringify({ replica, policy, ...Object.fromEntries(counts) }))
}

/** Undefined when the value is not an account. Counts that are not numbers are left out. */
export function decodeAccount(value: Buffer): AccountEntry | undefined {
  const tree = parsed(value)
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

function parsed(value: Buffer): Json | undefined {
  try {
    return JSON.parse(value.toString())
  } catch {
    return undefined
  }
}
