/** Permissions that are independent of the operator's policy. */
import { ALLOWED, type Authorizer, NO_OPINION } from '../decisions.ts'
import { HEALTH_PATHS } from '../server-paths.ts'
import { AUTHENTICATED, isMaster } from '../user.ts'

const HEALTH: ReadonlySet<string> = new Set(HEALTH_PATHS)

/**
 * Masters may do everything, so that a mistake in a policy cannot lock all users out. Authenticated
 * users may read the overall health; single checks show reasons for failures and need a permission.
 */
export const standingRights: Authorizer = {
  decide: (user, attributes) => {
    if (isMaster(user)) return ALLOWED
    const { isResource, verb, path } = attributes
    const isProbe = !isResource && (verb === 'get' || verb === 'head') && HEALTH.has(path)
    return isProbe && user.groups.includes(AUTHENTICATED) ? ALLOWED : NO_OPINION
  },
}

/** Allows everything to all authenticated users. Must be enabled explicitly. */
export const alwaysAllow: Authorizer = { decide: () => ALLOWED }

/** Returns a function that matches paths. A pattern that ends with `*` is a prefix. */
export function openPaths(patterns: readonly string[]): (path: string) => boolean {
  const exact = new Set(patterns)
  const prefixes = patterns
    .filter((pattern) => pattern.endsWith('*'))
    .map((pattern) => pattern.slice(0, -1))
  return (path) => exact.has(path) || prefixes.some((prefix) => path.startsWith(prefix))
}
