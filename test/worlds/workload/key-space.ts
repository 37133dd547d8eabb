/** Which events clients read and write: a few hundred fixed names, some of them hot, and new ones. */
import type { EventKey } from '../../../src/storage/storage.ts'
import type { Random } from '../../support/random.ts'
import type { KnownStates } from './known-states.ts'

/**
 * `a-b/` sorts before `a/`, so that the order of paths differs from that of namespaces. There is
 * little traffic in `quiet`, where a lost wakeup is not made good by the next change.
 */
export const namespaces = ['a', 'a-b', 'b', 'c'] as const
export const quietNamespace = 'quiet'
const fixedNamesDefault = 60
const hotNames = 6
/** Clients use no new names while they know of more events than this. */
const eventsMax = 900

export class KeySpace {
  readonly #states: KnownStates
  readonly #fixedNames: number
  readonly #hasNew: boolean

  /** `fixedNames`: names in each namespace; with a given number there are no others. */
  constructor(states: KnownStates, fixedNames?: number) {
    this.#states = states
    this.#fixedNames = fixedNames ?? fixedNamesDefault
    this.#hasNew = fixedNames === undefined
  }

  /** New names are used. */
  get mayGrow(): boolean {
    return this.#hasNew && this.#states.count <= eventsMax
  }

  /** One of the fixed names, or of the events that exist. */
  any(random: Random): string {
    const kind = random.next()
    if (kind < 0.3 && this.#hasNew) return `${namespaces[0]}/hot-${random.below(hotNames)}`
    if (kind < 0.65) return this.fixed(random)
    return this.existing(random)
  }

  fixed(random: Random): string {
    if (this.#hasNew && random.chance(0.01)) return `${quietNamespace}/key-${random.below(5)}`
    return `${random.pick(namespaces)}/key-${random.below(this.#fixedNames)}`
  }

  /** An event that is or was there lately. */
  existing(random: Random): string {
    return this.#states.pick(random) ?? this.fixed(random)
  }

  /** A name that was never used; some of them are prefixes of others. */
  fresh(random: Random, number: number): string {
    const namespace = random.chance(0.01) ? quietNamespace : random.pick(namespaces)
    const end = random.chance(0.2) ? '-x' : ''
    return `${namespace}/new-${number.toString(36)}${end}`
  }
}

export function keyOf(path: string): EventKey {
  const slash = path.indexOf('/')
  return { cluster: 'local', namespace: path.slice(0, slash), name: path.slice(slash + 1) }
}

export function pathOf({ namespace, name }: EventKey): string {
  return `${namespace}/${name}`
}
