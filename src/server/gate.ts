/** Builds the gate, with its authenticators and authorizers, from the options. */

import type { ClustersSource } from '../clusters/clusters-file.ts'
import { openPaths } from '../gate/authorization/standing-rights.ts'
import { Gate } from '../gate/gate.ts'
import { Origins } from '../gate/origin/origins.ts'
import { monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import type { Options } from '../options/options.ts'
import { type Authentication, openAuthentication } from './authentication.ts'
import { openAuthorization, type RulesFor } from './authorization.ts'
import { releaseVersion } from './build-info.ts'
import type { CertificatesInUse } from './metrics/certificates.ts'
import type { FilePollStatus } from './metrics/files.ts'

export interface OpenedGate {
  readonly gate: Gate
  readonly clientAuthorities: Authentication['clientAuthorities']
  readonly rulesFor: RulesFor
  readonly certificates: readonly CertificatesInUse[]
  /** `listener` is called when a file about access changes: tokens, authorities, keys, roles. */
  onChange(listener: () => void): void
  /** Stops polling files. */
  stop(): void
}

/**
 * Rejects when a file cannot be used; the error names the flag. `clusters` has the clusters whose
 * own API servers may decide about their users.
 */
export async function openGate(
  options: Options,
  log: Log,
  polls?: FilePollStatus,
  clusters?: ClustersSource,
): Promise<OpenedGate> {
  const followers: { stop(): void }[] = []
  let notify = (): void => {}
  const pollsWithNotice: FilePollStatus = (...flags) => {
    const onPoll = polls?.(...flags)
    return (isUsable, hasChanged) => {
      onPoll?.(isUsable, hasChanged)
      if (hasChanged) notify()
    }
  }
  const origins = clusters && openOrigins(clusters, log)
  if (origins !== undefined) followers.push(origins)
  clusters?.onChange(() => notify())
  const authentication = await openAuthentication(options, log, pollsWithNotice, origins?.tokens)
  followers.push(authentication)
  const authorization = await openAuthorization(options, log, pollsWithNotice)
  followers.push(authorization)
  const allowsAnonymous = settleAnonymous(options, log)
  if (!authentication.isConfigured && !allowsAnonymous) warnOfNoAuthentication(log)
  return {
    rulesFor: authorization.rulesFor,
    certificates: [
      ...authentication.certificates,
      ...authorization.certificates,
      { flag: '--clusters-file', pem: () => clusters?.certificates },
    ],
    gate: new Gate({
      authenticators: authentication.authenticators,
      // First: it alone decides about the users of clusters.
      authorizers: [
        ...(origins === undefined ? [] : [origins.authorizer]),
        ...authorization.authorizers,
      ],
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

function openOrigins(clusters: ClustersSource, log: Log): Origins {
  const userAgent = `tidings/${releaseVersion()}`
  return new Origins(clusters, { clock: monotonicClock, log, userAgent })
}

/**
 * Whether anonymous users are allowed. Never with AlwaysAllow: no operator means to give every
 * permission to unauthenticated clients.
 */
function settleAnonymous({ anonymousAuth, authorizationModes }: Options, log: Log): boolean {
  if (!authorizationModes.includes('AlwaysAllow')) return anonymousAuth
  log.warn('Every authenticated user is allowed everything', {
    because: '--authorization-mode contains AlwaysAllow',
  })
  if (!anonymousAuth) return false
  log.warn('Anonymous access stays off: --authorization-mode contains AlwaysAllow')
  return false
}

/** Such a server looks healthy from its own host, so the cause of the 401s is hard to find. */
function warnOfNoAuthentication(log: Log): void {
  log.warn(
    'No authentication is configured: requests get 401, except health, version and metrics from this host',
    {
      help: 'set --token-auth-file, --client-ca-file, --requestheader-client-ca-file, --service-account-key-file, --oidc-issuer-url or --authentication-token-webhook-config-file; or --anonymous-auth',
    },
  )
}
