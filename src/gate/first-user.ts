import { StatusError } from '../api/status.ts'
import type { User } from './user.ts'

export type AuthenticationResult = User | undefined | Promise<User | undefined>

/**
 * The first authenticator that returns a user decides, even if the request has other credentials
 * that are invalid. A request with invalid credentials and no valid ones is refused; it never
 * becomes anonymous. A result that is known at once is not a promise.
 */
export function firstUser<T>(
  all: readonly T[],
  authenticate: (one: T) => AuthenticationResult,
): AuthenticationResult {
  return firstFrom(0, { all, authenticate, refusal: undefined })
}

interface Search<T> {
  readonly all: readonly T[]
  readonly authenticate: (one: T) => AuthenticationResult
  /** The first refusal. */
  refusal: StatusError | undefined
}

function firstFrom<T>(start: number, search: Search<T>): AuthenticationResult {
  for (let index = start; index < search.all.length; index++) {
    try {
      const user = search.authenticate(search.all[index] as T)
      if (user instanceof Promise) return firstAfter(user, index, search)
      if (user !== undefined) return user
    } catch (error) {
      noteRefusal(error, search)
    }
  }
  if (search.refusal !== undefined) throw search.refusal
  return undefined
}

async function firstAfter<T>(
  pending: Promise<User | undefined>,
  index: number,
  search: Search<T>,
): Promise<User | undefined> {
  try {
    const user = await pending
    if (user !== undefined) return user
  } catch (error) {
    noteRefusal(error, search)
  }
  return firstFrom(index + 1, search)
}

function noteRefusal(error: unknown, search: Pick<Search<unknown>, 'refusal'>): void {
  if (!(error instanceof StatusError) || error.reason !== 'Unauthorized') throw error
  search.refusal ??= error
}
