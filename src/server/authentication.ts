/** Builds the authenticators from the options. */

import { ClientAuthorities } from '../gate/authentication/authorities.ts'
import { bearerTokens, type TokenAuthenticator } from '../gate/authentication/bearer-token.ts'
import { clientCertificates } from '../gate/authentication/client-certificate.ts'
import { frontProxy } from '../gate/authentication/front-proxy.ts'
import { OidcTokens } from '../gate/authentication/oidc-token.ts'
import { ServiceAccountTokens } from '../gate/authentication/service-account-token.ts'
import { FileTokens } from '../gate/authentication/token-file.ts'
import { TokenWebhook } from '../gate/authentication/token-webhook.ts'
import type { Authenticator } from '../gate/gate.ts'
import { WebhookClient } from '../gate/webhook/webhook-client.ts'
import { monotonicClock as clock } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { withFlagName } from '../options/flag-errors.ts'
import type { Options } from '../options/options.ts'
import type { CertificatesInUse } from './metrics/certificates.ts'
import type { FilePollStatus } from './metrics/files.ts'

export interface Authentication {
  /** Tried in this order. */
  readonly authenticators: readonly Authenticator[]
  /** Whether any authentication method is configured. */
  readonly isConfigured: boolean
  /** Authorities of client certificates; undefined when clients are not asked for one. */
  readonly clientAuthorities: Pick<ClientAuthorities, 'pem' | 'onChange'> | undefined
  readonly certificates: readonly CertificatesInUse[]
  /** Stops polling files. */
  stop(): void
}

/**
 * Rejects when a file cannot be used; the error names the flag. `origins` authenticates users of
 * clusters that are not users of this server.
 */
export async function openAuthentication(
  options: Options,
  log: Log,
  polls?: FilePollStatus,
  origins?: TokenAuthenticator,
): Promise<Authentication> {
  const authorities = await openAuthorities(options, log, polls)
  const certificates: CertificatesInUse[] = [
    { flag: '--client-ca-file', pem: () => authorities?.client?.pem },
    { flag: '--requestheader-client-ca-file', pem: () => authorities?.frontProxy?.pem },
  ]
  const oidc = await openOidcTokens(options, log, polls)
  certificates.push({ flag: '--oidc-ca-file', pem: () => oidc?.ca })
  const tokens = [
    await openFileTokens(options, log, polls),
    await openServiceAccountTokens(options, log, polls),
    oidc,
    await openTokenWebhook(options, log, { polls, certificates }),
  ].filter((users) => users !== undefined)
  return {
    authenticators: [
      ...(authorities === undefined ? [] : certificateUsers(options, authorities)),
      bearerTokens(tokens, origins),
    ],
    isConfigured: authorities !== undefined || tokens.length > 0 || origins !== undefined,
    clientAuthorities: authorities,
    certificates,
    stop: () => {
      authorities?.stop()
      for (const users of tokens) users.stop()
    },
  }
}

type OpenTokens = Promise<(TokenAuthenticator & { stop(): void }) | undefined>

async function openAuthorities(
  options: Options,
  log: Log,
  polls?: FilePollStatus,
): Promise<ClientAuthorities | undefined> {
  const { clientCaFile, requestheaderClientCaFile: frontProxyCaFile } = options
  if (clientCaFile === undefined && frontProxyCaFile === undefined) return undefined
  const flags = [
    ...(clientCaFile === undefined ? [] : ['--client-ca-file']),
    ...(frontProxyCaFile === undefined ? [] : ['--requestheader-client-ca-file']),
  ]
  return withFlagName(
    flags.join(', '),
    ClientAuthorities.open({ clientCaFile, frontProxyCaFile }, log, polls?.(...flags)),
  )
}

function certificateUsers(
  options: Options,
  authorities: ClientAuthorities,
): readonly Authenticator[] {
  return [
    frontProxy({
      authorities,
      allowedNames: options.requestheaderAllowedNames,
      headers: {
        username: options.requestheaderUsernameHeaders,
        group: options.requestheaderGroupHeaders,
        uid: options.requestheaderUidHeaders,
        extraPrefix: options.requestheaderExtraHeadersPrefix,
      },
    }),
    clientCertificates(authorities),
  ]
}

async function openFileTokens(
  { tokenAuthFile: file }: Options,
  log: Log,
  polls?: FilePollStatus,
): OpenTokens {
  if (file === undefined) return undefined
  const flag = '--token-auth-file'
  return withFlagName(flag, FileTokens.open(file, log, polls?.(flag)))
}

async function openServiceAccountTokens(
  options: Options,
  log: Log,
  polls?: FilePollStatus,
): OpenTokens {
  const { serviceAccountKeyFiles: keyFiles, serviceAccountIssuers: issuers } = options
  if (keyFiles.length === 0) return undefined
  const audiences = audiencesOf(options)
  const flag = '--service-account-key-file'
  const onPoll = polls?.(flag)
  return withFlagName(
    flag,
    ServiceAccountTokens.open({ keyFiles, issuers, audiences, clock, log, onPoll }),
  )
}

async function openOidcTokens(
  options: Options,
  log: Log,
  polls?: FilePollStatus,
): Promise<OidcTokens | undefined> {
  const { oidcIssuerUrl: issuerUrl, oidcClientId: clientId } = options
  if (issuerUrl === undefined || clientId === undefined) return undefined
  const { oidcUsernameClaim: usernameClaim, oidcRequiredClaims } = options
  const byDefault = usernameClaim === 'email' ? '-' : `${issuerUrl}#`
  const usernamePrefix = options.oidcUsernamePrefix ?? byDefault
  const flag = '--oidc-ca-file'
  return withFlagName(
    flag,
    OidcTokens.open({
      issuerUrl,
      clientId,
      caFile: options.oidcCaFile,
      signingAlgorithms: options.oidcSigningAlgorithms,
      usernameClaim,
      usernamePrefix: usernamePrefix === '-' ? '' : usernamePrefix,
      groupsClaim: options.oidcGroupsClaim,
      groupsPrefix: options.oidcGroupsPrefix ?? '',
      required: new Map(oidcRequiredClaims.map(splitClaim)),
      clock,
      log,
      onPoll: options.oidcCaFile === undefined ? undefined : polls?.(flag),
    }),
  )
}

async function openTokenWebhook(
  options: Options,
  log: Log,
  shown: { readonly polls: FilePollStatus | undefined; readonly certificates: CertificatesInUse[] },
): OpenTokens {
  const file = options.authenticationTokenWebhookConfigFile
  if (file === undefined) return undefined
  const flag = '--authentication-token-webhook-config-file'
  const onPoll = shown.polls?.(flag)
  const reviewer = await withFlagName(flag, WebhookClient.open(file, { log, onPoll }))
  shown.certificates.push({ flag, pem: () => reviewer.certificates })
  const cacheMs = options.authenticationTokenWebhookCacheTtlMs
  return new TokenWebhook({ reviewer, audiences: audiencesOf(options), cacheMs, clock, log })
}

function audiencesOf({ apiAudiences, serviceAccountIssuers }: Options): readonly string[] {
  return apiAudiences.length > 0 ? apiAudiences : serviceAccountIssuers
}

function splitClaim(item: string): [string, string] {
  const at = item.indexOf('=')
  return [item.slice(0, at), item.slice(at + 1)]
}
