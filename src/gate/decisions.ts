import type { Attributes } from './attributes.ts'
import type { User } from './user.ts'

export type Verdict = 'allow' | 'deny' | 'no-opinion'

export interface Decision {
  readonly verdict: Verdict
  /** Sent to the client when it is refused. */
  readonly reason?: string
  /**
   * The authorizer failed, for example because its webhook is down: a retry may get another
   * verdict. With `deny`, no other authorizer is called.
   */
  readonly isUnsure?: boolean
}

/**
 * Decides what users may do. Fails closed: when it cannot decide, it has no opinion. A decision
 * that is known at once is not a promise, since awaiting one costs a microtask.
 */
export interface Authorizer {
  decide(user: User, attributes: Attributes): Decision | Promise<Decision>
  /** The reason for its last permission, for the audit log. May cost more than the decision. */
  reasonFor?(user: User, attributes: Attributes): string | undefined
}

export const ALLOWED: Decision = { verdict: 'allow' }
export const NO_OPINION: Decision = { verdict: 'no-opinion' }

export interface Question {
  readonly user: User
  readonly attributes: Attributes
  /** Whether a permission needs its reason as well. */
  readonly isExplained: boolean
}

/** The decision of the first authorizer with an opinion. */
export function firstDecision(
  authorizers: readonly Authorizer[],
  question: Question,
): Decision | Promise<Decision> {
  return firstFrom(NOTHING_DECIDED, authorizers, question)
}

/** The state after some authorizers had no opinion. */
interface Undecided {
  readonly asked: number
  readonly reason: string | undefined
  readonly isUnsure: boolean
}

const NOTHING_DECIDED: Undecided = { asked: 0, reason: undefined, isUnsure: false }

function firstFrom(
  before: Undecided,
  authorizers: readonly Authorizer[],
  question: Question,
): Decision | Promise<Decision> {
  let undecided = before
  for (let at = before.asked; at < authorizers.length; at++) {
    const authorizer = authorizers[at] as Authorizer
    const decision = authorizer.decide(question.user, question.attributes)
    if (decision instanceof Promise) {
      const known = undecided
      return decision.then((late) => {
        const next = weighed(late, known)
        return 'verdict' in next
          ? explained(next, authorizer, question)
          : firstFrom(next, authorizers, question)
      })
    }
    const next = weighed(decision, undecided)
    if ('verdict' in next) return explained(next, authorizer, question)
    undecided = next
  }
  const { reason, isUnsure } = undecided
  return { verdict: 'no-opinion', isUnsure, ...(reason && { reason }) }
}

/** Returns the final decision, or the state before the next authorizer is asked. */
function weighed(decision: Decision, known: Undecided): Decision | Undecided {
  if (decision.verdict === 'allow') return decision
  const reason = decision.reason ?? known.reason
  if (decision.verdict === 'deny') return { ...decision, ...(reason && { reason }) }
  return {
    asked: known.asked + 1,
    reason,
    isUnsure: known.isUnsure || decision.isUnsure === true,
  }
}

function explained(decision: Decision, authorizer: Authorizer, question: Question): Decision {
  if (decision.verdict !== 'allow' || !question.isExplained) return decision
  const reason = authorizer.reasonFor?.(question.user, question.attributes)
  return reason === undefined ? decision : { ...decision, reason }
}
