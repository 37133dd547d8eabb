/** What holds whatever the operator's policy says. */
import type { Authorizer, Decision } from '../gate.ts'
import { AUTHENTICATED, isMaster } from '../user.ts'

const ALLOWED: Promise<Decision> = Promise.resolve({ verdict: 'allow' })
const NO_OPINION: Promise<Decision> = Promise.resolve({ verdict: 'no-opinion' })
const HEALTH = /^\/(livez|readyz|healthz)$/

/**
 * Masters may do everything, so that no mistake in a policy locks everybody out. Whoever has shown
 * who it is may ask for the health of the whole; single checks tell reasons, and need a permission.
 */
export const standingRights: Authorizer = {
  decide: (user, attributes) => {
    if (isMaster(user)) return ALLOWED
    const { isResource, verb, path } = attributes
    const isProbe = !isResource && (verb === 'get' || verb === 'head') && HEALTH.test(path)
    return isProbe && user.groups.includes(AUTHENTICATED) ? ALLOWED : NO_OPINION
  },
}

/** Whether one of `patterns` stands for a path; one that ends with `*` does for all that begin so. */
export function openPaths(patterns: readonly string[]): (path: string) => boolean {
  const exact = new Set(patterns)
  const beginnings = patterns
    .filter((pattern) => pattern.endsWith('*'))
    .map((pattern) => pattern.slice(0, -1))
  return (path) => exact.has(path) || beginnings.some((beginning) => path.startsWith(beginning))
}
