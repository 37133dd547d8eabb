import type { Attributes } from './attributes.ts'
import type { User } from './user.ts'

export type Verdict = 'allow' | 'deny' | 'no-opinion'

export interface Decision {
  readonly verdict: Verdict
  /** Sent to a client that is refused. */
  readonly reason?: string
  /**
   * The authorizer failed (its webhook is down): a retry may get another verdict. With `deny`, no
   * other authorizer is called.
   */
  readonly isUnsure?: boolean
}

/**
 * Decides what users may do. Fails closed: when it cannot decide, it has no opinion. As with
 * authenticators, a decision that is known at once is not a promise.
 */
export interface Authorizer {
  decide(user: User, attributes: Attributes): Decision | Promise<Decision>
  /** Why it allows what it has just allowed, for the audit log; may cost more than the decision. */
  reasonFor?(user: User, attributes: Attributes): string | undefined
}

/** Decisions without a reason. */
export const ALLOWED: Decision = { verdict: 'allow' }
export const NO_OPINION: Decision = { verdict: 'no-opinion' }
