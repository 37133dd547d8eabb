/** Everything that decides who comes in, put together from the options. */
import { type Authentication, openAuthentication } from './authentication.ts'
import { openAuthorization, type RulesFor } from './authorization.ts'
import { Gate } from './gate/gate.ts'
import { openPaths } from './gate/standing-rights.ts'
import type { Log } from './lib/log.ts'
import type { Options } from './options/options.ts'

export interface Access {
  readonly gate: Gate
  readonly clientAuthorities: Authentication['clientAuthorities']
  readonly rulesFor: RulesFor
  /** Stops looking at files. */
  stop(): void
}

/** Rejects, naming the flag, when a file cannot be used. */
export async function openAccess(options: Options, log: Log): Promise<Access> {
  const followers: { stop(): void }[] = []
  const authentication = await openAuthentication(options, log)
  followers.push(authentication)
  const authorization = await openAuthorization(options, log)
  followers.push(authorization)
  return {
    rulesFor: authorization.rulesFor,
    gate: new Gate({
      authenticators: authentication.authenticators,
      authorizers: authorization.authorizers,
      isOpenToAll: openPaths(options.authorizationAlwaysAllowPaths),
      allowsAnonymous: allowsAnonymous(options, log),
    }),
    clientAuthorities: authentication.clientAuthorities,
    stop: () => {
      for (const follower of followers) follower.stop()
    },
  }
}

/** Everything to everybody, known or not, is never what was meant. */
function allowsAnonymous({ anonymousAuth, authorizationModes }: Options, log: Log): boolean {
  if (!anonymousAuth || !authorizationModes.includes('AlwaysAllow')) return anonymousAuth
  log.warn('Anonymous access stays off: --authorization-mode has AlwaysAllow')
  return false
}
