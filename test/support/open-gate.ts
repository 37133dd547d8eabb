import type { RequestObserver } from '../../src/endpoints/observe/request-tallies.ts'
import { alwaysAllow } from '../../src/gate/authorization/standing-rights.ts'
import { Gate } from '../../src/gate/gate.ts'
import { type Limits, RequestLimits } from '../../src/gate/limits/limits.ts'
import type { User } from '../../src/gate/user.ts'

/**
 * For tests of what is behind the gate: every caller is this user, with all permissions and no
 * limits.
 */
export function openTo(user: User): {
  readonly gate: Gate
  readonly limits: Limits
  readonly observer: RequestObserver
} {
  return {
    gate: new Gate({
      authenticators: [{ authenticate: async () => user }],
      authorizers: [alwaysAllow],
      allowsAnonymous: false,
    }),
    limits: new RequestLimits({
      requestsInFlight: 0,
      mutatingRequestsInFlight: 0,
      watches: 0,
      watchesPerUser: 0,
    }),
    observer: { begun: () => {}, ended: () => {} },
  }
}
