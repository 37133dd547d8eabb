/**
 * What a run leaves behind to be judged: who asked for what, when, and what came of it.
 *
 * Every put writes a value that no other put writes, so whoever sees a value knows which operation
 * put it there.
 */

/** What a key held: a value, and the version of the change that put it there. Undefined: nothing. */
export type Seen = { readonly value: string; readonly version: number } | undefined

export type WriteOutcome =
  /** It happened, as the change `version`, to a key that held `base`. */
  | { readonly result: 'applied'; readonly version: number; readonly base: Seen }
  /** It did not happen because of what was there. */
  | { readonly result: 'refused'; readonly seen: Seen }
  /** It did not happen, for a reason that says nothing about the key. */
  | { readonly result: 'failed' }
  /** If it happened, or happens yet, then to a key that holds `base`. */
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
  /** What it puts; undefined deletes. */
  readonly value: string | undefined
  readonly outcome: WriteOutcome
}

/** A read of the newest state of one key. */
export interface GetOperation extends Timed {
  readonly type: 'get'
  readonly key: string
  readonly seen: Seen
}

/** A read of the newest state of all keys: those that are absent held nothing. */
export interface ListOperation extends Timed {
  readonly type: 'list'
  readonly version: number
  readonly items: ReadonlyMap<string, NonNullable<Seen>>
}

/** Reads that failed are not here: they say nothing. */
export type Operation = WriteOperation | GetOperation | ListOperation

export interface Violation {
  readonly kind: string
  readonly message: string
}

export function describeSeen(seen: Seen): string {
  return seen === undefined ? 'nothing' : `${seen.value}@${seen.version}`
}

/** One line that a person can follow. */
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
