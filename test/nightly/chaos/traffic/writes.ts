import { StorageError } from '../../../../src/storage/errors.ts'
import type { EventKey, EventStorage, StoredEvent } from '../../../../src/storage/storage.ts'
import type { Seen, Violation, WriteOutcome } from '../model/history.ts'
import { bodyOf, readValue, seenOf } from './values.ts'

export interface Write {
  readonly key: EventKey
  /** The value to put; undefined for a delete. */
  readonly value: string | undefined
  /** The required state of the key: nothing, something, this version, or anything at all. */
  readonly wants: 'nothing' | 'something' | 'anything' | { readonly version: number }
}

export interface Written {
  readonly outcome: WriteOutcome
  /** What is wrong with the response by itself. */
  readonly violation?: Violation | undefined
}

/** Writes, and returns the result in the terms of the model. */
export async function write(storage: EventStorage, { key, value, wants }: Write): Promise<Written> {
  // The state that the last attempt was based on. Undefined: no attempt was made.
  let base: { readonly seen: Seen } | undefined
  const look = (current: StoredEvent | undefined): void => {
    const seen = current && seenOf(current)
    base = { seen }
    const isWanted = typeof wants === 'object' ? seen?.version === wants.version : true
    if (!isWanted || (wants === 'something' && seen === undefined)) throw new Refusal(seen)
  }
  try {
    let stored: StoredEvent
    if (value === undefined) {
      stored = await storage.delete(key, look)
    } else if (wants === 'nothing') {
      base = { seen: undefined }
      stored = await storage.create(key, bodyOf(key, value))
    } else {
      stored = await storage.update(key, (current) => {
        look(current)
        return bodyOf(key, value)
      })
    }
    return applied({ stored, value, base })
  } catch (error) {
    return notApplied(error, base)
  }
}

/** Thrown by callbacks of the storage: the key does not have the required state. */
class Refusal extends Error {
  readonly seen: Seen

  constructor(seen: Seen) {
    super('the key holds something else')
    this.seen = seen
  }
}

function applied(answer: {
  readonly stored: StoredEvent
  readonly value: string | undefined
  readonly base: { readonly seen: Seen } | undefined
}): Written {
  const { stored, value, base } = answer
  const { version } = stored
  const answered = readValue(stored.body)
  const expected = value ?? base?.seen?.value
  const outcome = { result: 'applied', version, base: base?.seen } as const
  if (base !== undefined && answered === expected) return { outcome }
  const message = `at version ${version}: the response has ${answered}, not ${expected}`
  return { outcome, violation: { kind: 'wrong-response', message } }
}

function notApplied(error: unknown, base: { readonly seen: Seen } | undefined): Written {
  if (error instanceof Refusal) return { outcome: { result: 'refused', seen: error.seen } }
  if (!(error instanceof StorageError)) return unexpected(error)
  switch (error.kind) {
    case 'exists':
      if (error.current === undefined) return unexpected(error)
      return { outcome: { result: 'refused', seen: seenOf(error.current) } }
    case 'missing':
      return { outcome: { result: 'refused', seen: undefined } }
    case 'timeout':
      // Without an attempt nothing was applied.
      return { outcome: base ? { result: 'unknown', base: base.seen } : { result: 'failed' } }
    case 'unavailable':
    case 'overloaded':
    case 'conflict':
      return { outcome: { result: 'failed' } }
    case 'compacted':
    case 'future':
    case 'too-large':
    case 'corrupt':
    case 'foreign':
    case 'fenced':
      return unexpected(error)
  }
}

function unexpected(error: unknown): Written {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { outcome: { result: 'failed' }, violation: { kind: 'unexpected-error', message } }
}
