import { StatusError } from '../api/status.ts'
import type { User } from './user.ts'

export type AuthenticationResult = User | undefined | Promise<User | undefined>

/**
 * The first authenticator that returns a user decides, even if the request has other credentials
 * that are invalid. A request with invalid credentials and no valid ones is refused; it never
 * becomes anonymous.
 */
export async function firstUser<T>(
  all: readonly T[],
  authenticate: (one: T) => AuthenticationResult,
): Promise<User | undefined> {
  let refusal: StatusError | undefined
  for (const one of all) {
    try {
      const result = authenticate(one)
      const user = result instanceof Promise ? await result : result
      if (user !== undefined) return user
    } catch (error) {
      if (!(error instanceof StatusError) || error.reason !== 'Unauthorized') throw error
      refusal ??= error
    }
  }
  if (refusal !== undefined) throw refusal
  return undefined
}
