/**
 * The history of a run: all calls, their times and their results.
 *
 * Every put writes a unique value, so each value that is read identifies the operation that wrote
 * it.
 */

/**
 * The state of a key: a value, and the version of the change that wrote it. Undefined: no event.
 */
export type Seen = { readonly value: string; readonly version: number } | undefined

export type WriteOutcome =
  /** Applied, as the change `version`, to a key that held `base`. */
  | { readonly result: 'applied'; readonly version: number; readonly base: Seen }
  /** Not applied because of the current state. */
  | { readonly result: 'refused'; readonly seen: Seen }
  /** Not applied, for a reason that says nothing about the key. */
  | { readonly result: 'failed' }
  /** Unknown: if it is applied, now or later, then to a key that holds `base`. */
  | { readonly result: 'unknown'; readonly base: Seen }

interface Timed {
  readonly id: number
  /** Monotonic, in ms. */
  readonly calledAt: number
  readonly returnedAt: number
}

export interface WriteOperation extends Timed {
  readonly type: 'write'
  readonly key: string
  /** The value of the put; undefined for a delete. */
  readonly value: string | undefined
  readonly outcome: WriteOutcome
}

/** A read of the newest state of one key. */
export interface GetOperation extends Timed {
  readonly type: 'get'
  readonly key: string
  readonly seen: Seen
}

/** A read of the newest state of all keys: keys that are absent held nothing. */
export interface ListOperation extends Timed {
  readonly type: 'list'
  readonly version: number
  readonly items: ReadonlyMap<string, NonNullable<Seen>>
}

/** Failed reads are left out: they prove nothing. */
export type Operation = WriteOperation | GetOperation | ListOperation

export interface Violation {
  readonly kind: string
  readonly message: string
}

export function describeSeen(seen: Seen): string {
  return seen === undefined ? 'nothing' : `${seen.value}@${seen.version}`
}

/** One line for a person to read. */
export function describeOperation(operation: Operation): string {
  const { id, calledAt, returnedAt } = operation
  const when = `#${id} [${calledAt.toFixed(1)}, ${returnedAt.toFixed(1)}]`
  if (operation.type === 'list') return `${when} list@${operation.version}`
  if (operation.type === 'get') return `${when} get saw ${describeSeen(operation.seen)}`
  const { value, outcome } = operation
  const what = value === undefined ? 'delete' : `put ${value}`
  switch (outcome.result) {
    case 'applied':
      return `${when} ${what} applied@${outcome.version} to ${describeSeen(outcome.base)}`
    case 'refused':
      return `${when} ${what} refused by ${describeSeen(outcome.seen)}`
    case 'failed':
      return `${when} ${what} failed`
    case 'unknown':
      return `${when} ${what} unknown, to ${describeSeen(outcome.base)}`
  }
}
