/** Builds the authorizers from the options. */

import { Rbac } from '../gate/authorization/rbac.ts'
import type { PolicyRule } from '../gate/authorization/rule-set.ts'
import { alwaysAllow, standingRights } from '../gate/authorization/standing-rights.ts'
import { WebhookAuthorizer } from '../gate/authorization/webhook-authorizer.ts'
import type { Authorizer } from '../gate/decisions.ts'
import { NO_OPINION } from '../gate/decisions.ts'
import { isMaster, type User } from '../gate/user.ts'
import { WebhookClient } from '../gate/webhook/webhook-client.ts'
import { monotonicClock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { withFlagName } from '../options/flag-errors.ts'
import type { Options } from '../options/options.ts'
import type { CertificatesInUse } from './metrics/certificates.ts'
import type { FilePollStatus } from './metrics/files.ts'

export interface Authorization {
  /** Called in this order. */
  readonly authorizers: readonly Authorizer[]
  readonly rulesFor: RulesFor
  readonly certificates: readonly CertificatesInUse[]
  /** Stops polling files. */
  stop(): void
}

/** The rules of a user in a namespace and on paths, as far as they can be listed. */
export type RulesFor = (
  user: User,
  scope: { readonly cluster: string; readonly namespace: string },
) => { readonly rules: readonly PolicyRule[]; readonly isIncomplete: boolean }

const EVERYTHING: readonly PolicyRule[] = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'], resourceNames: [], nonResourceUrls: [] },
  { verbs: ['*'], apiGroups: [], resources: [], resourceNames: [], nonResourceUrls: ['*'] },
]

/** The rules of a cluster's user, which only the cluster itself knows. */
const UNKNOWN_RULES: ReturnType<RulesFor> = { rules: [], isIncomplete: true }

/** Rejects when a file cannot be used; the error names the flag. */
export async function openAuthorization(
  options: Options,
  log: Log,
  polls?: FilePollStatus,
): Promise<Authorization> {
  const opened: { stop(): void }[] = []
  const authorizers: Authorizer[] = [standingRights]
  const certificates: CertificatesInUse[] = []
  let rbac: Rbac | undefined
  for (const mode of options.authorizationModes) {
    if (mode === 'RBAC') {
      const { rbacPolicyPaths: paths, eventsGroup, clusterName } = options
      const flag = '--rbac-policy-path'
      const onPoll = paths.length === 0 ? undefined : polls?.(flag)
      rbac = await withFlagName(flag, Rbac.open({ paths, eventsGroup, clusterName, log, onPoll }))
      opened.push(rbac)
      authorizers.push(rbac)
    } else if (mode === 'Webhook') {
      const path = options.authorizationWebhookConfigFile ?? ''
      const flag = '--authorization-webhook-config-file'
      const client = await withFlagName(
        flag,
        WebhookClient.open(path, { log, onPoll: polls?.(flag) }),
      )
      opened.push(client)
      certificates.push({ flag, pem: () => client.certificates })
      authorizers.push(webhook(client, options, log))
    } else authorizers.push(alwaysAllow)
  }
  const isOpenToAll = options.authorizationModes.includes('AlwaysAllow')
  const isWebhook = options.authorizationModes.includes('Webhook')
  return {
    authorizers,
    certificates,
    rulesFor: (user, scope) => {
      if (user.origin !== undefined) return UNKNOWN_RULES
      const isAllowedAll = isOpenToAll || isMaster(user)
      return {
        rules: isAllowedAll ? EVERYTHING : (rbac?.rulesFor(user, scope) ?? []),
        isIncomplete: isWebhook,
      }
    },
    stop: () => {
      for (const one of opened) one.stop()
    },
  }
}

function webhook(client: WebhookClient, options: Options, log: Log): Authorizer {
  const authorizer = new WebhookAuthorizer({
    client,
    clusterName: options.clusterName,
    authorizedTtlMs: options.authorizationWebhookAuthorizedTtlMs,
    unauthorizedTtlMs: options.authorizationWebhookUnauthorizedTtlMs,
    clock: monotonicClock,
    log,
  })
  if (options.authorizationWebhookAllClusters) return authorizer
  // A webhook that does not know of clusters would allow in all of them what it allows in one.
  return {
    decide: (user, attributes) =>
      attributes.cluster === options.clusterName ? authorizer.decide(user, attributes) : NO_OPINION,
  }
}
