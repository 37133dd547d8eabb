/** Everything that decides who comes in, put together from the options. */
import { type Authentication, openAuthentication } from './authentication.ts'
import { openAuthorization, type RulesFor } from './authorization.ts'
import type { CertificatesInUse } from './certificate-metrics.ts'
import type { FileLooks } from './file-metrics.ts'
import { openPaths } from './gate/authorization/standing-rights.ts'
import { Gate } from './gate/gate.ts'
import type { Log } from './lib/log.ts'
import type { Options } from './options/options.ts'

export interface Access {
  readonly gate: Gate
  readonly clientAuthorities: Authentication['clientAuthorities']
  readonly rulesFor: RulesFor
  readonly certificates: readonly CertificatesInUse[]
  /** Called when what a file says about access has changed: tokens, authorities, keys, roles. */
  onChange(listener: () => void): void
  /** Stops looking at files. */
  stop(): void
}

/** Rejects, naming the flag, when a file cannot be used. */
export async function openAccess(options: Options, log: Log, looks?: FileLooks): Promise<Access> {
  const followers: { stop(): void }[] = []
  let notify = (): void => {}
  const noticing: FileLooks = (...flags) => {
    const onLook = looks?.(...flags)
    return (isUsable, hasChanged) => {
      onLook?.(isUsable, hasChanged)
      if (hasChanged) notify()
    }
  }
  const authentication = await openAuthentication(options, log, noticing)
  followers.push(authentication)
  const authorization = await openAuthorization(options, log, noticing)
  followers.push(authorization)
  const allowsAnonymous = settleAnonymous(options, log)
  if (!authentication.knowsAnybody && !allowsAnonymous) warnOfNobody(log)
  return {
    rulesFor: authorization.rulesFor,
    certificates: [...authentication.certificates, ...authorization.certificates],
    gate: new Gate({
      authenticators: authentication.authenticators,
      authorizers: authorization.authorizers,
      isOpenToAll: openPaths(options.authorizationAlwaysAllowPaths),
      allowsAnonymous,
      distrustsHost: !options.trustLoopback,
    }),
    clientAuthorities: authentication.clientAuthorities,
    onChange: (listener) => {
      notify = listener
    },
    stop: () => {
      for (const follower of followers) follower.stop()
    },
  }
}

/** Whether strangers are somebody. Everything to everybody, known or not, is never what was meant. */
function settleAnonymous({ anonymousAuth, authorizationModes }: Options, log: Log): boolean {
  if (!authorizationModes.includes('AlwaysAllow')) return anonymousAuth
  log.warn('Everybody who is authenticated may do everything', {
    because: '--authorization-mode has AlwaysAllow',
  })
  if (!anonymousAuth) return false
  log.warn('Anonymous access stays off: --authorization-mode has AlwaysAllow')
  return false
}

/** It runs and looks healthy from here, which makes it hard to see from there. */
function warnOfNobody(log: Log): void {
  log.warn(
    'Nobody can be authenticated: all requests get 401, but for health from this host and open paths',
    {
      help: 'give --token-auth-file, --client-ca-file, --requestheader-client-ca-file, --service-account-key-file, --oidc-issuer-url or --authentication-token-webhook-config-file; or --anonymous-auth',
    },
  )
}
