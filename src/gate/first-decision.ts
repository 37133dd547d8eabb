import type { Attributes } from './attributes.ts'
import type { Authorizer, Decision } from './decisions.ts'
import type { User } from './user.ts'

/** What the authorizers are asked. */
export interface Question {
  readonly user: User
  readonly attributes: Attributes
  /** The reason of a permission is wanted, too. */
  readonly isExplained: boolean
}

/** The decision of the first authorizer with an opinion; not a promise if it is known at once. */
export function firstDecision(
  authorizers: readonly Authorizer[],
  question: Question,
): Decision | Promise<Decision> {
  return firstFrom(NOTHING_DECIDED, authorizers, question)
}

/** What is known after some authorizers without an opinion. */
interface Undecided {
  /** How many of them. */
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

/** The final decision, or what is known before the next authorizer is asked. */
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
