import { type FlagTable, noEffectWithout, type Rule } from './flag.ts'
import { boolean, duration, list, Mistake, optionalPath, quote } from './kinds.ts'
import { type OidcOptions, oidcFlags, oidcRules } from './oidc-flags.ts'

export interface AuthenticationOptions extends OidcOptions {
  readonly tokenAuthFile: string | undefined
  readonly anonymousAuth: boolean
  readonly clientCaFile: string | undefined

  readonly requestheaderClientCaFile: string | undefined
  readonly requestheaderAllowedNames: readonly string[]
  /** Header names are in lower case. */
  readonly requestheaderUsernameHeaders: readonly string[]
  readonly requestheaderGroupHeaders: readonly string[]
  readonly requestheaderUidHeaders: readonly string[]
  readonly requestheaderExtraHeadersPrefix: readonly string[]

  readonly serviceAccountKeyFiles: readonly string[]
  readonly serviceAccountIssuers: readonly string[]
  readonly apiAudiences: readonly string[]

  readonly authenticationTokenWebhookConfigFile: string | undefined
  readonly authenticationTokenWebhookCacheTtlMs: number
}

const names = list('names', (item) => notEmpty(item))

const certificateFlags: FlagTable<
  Pick<
    AuthenticationOptions,
    | 'anonymousAuth'
    | 'clientCaFile'
    | 'requestheaderClientCaFile'
    | 'requestheaderAllowedNames'
    | 'requestheaderUsernameHeaders'
    | 'requestheaderGroupHeaders'
    | 'requestheaderUidHeaders'
    | 'requestheaderExtraHeadersPrefix'
  >
> = {
  anonymousAuth: {
    name: 'anonymous-auth',
    topic: 'Access',
    kind: boolean,
    default: false,
    help: 'Treat requests without credentials as the user system:anonymous in the group system:unauthenticated, instead of refusing them with 401. Authorization then decides what they may do.',
  },
  clientCaFile: {
    name: 'client-ca-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the certificate authorities of client certificates. The common name is the user, and organizations are its groups. Checked for changes once a second. Without it, client certificates do not authenticate.',
  },
  requestheaderClientCaFile: {
    name: 'requestheader-client-ca-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the certificate authorities of front proxies, which name users in headers. It must not share an authority with --client-ca-file. Checked for changes once a second. Without it, such headers are ignored.',
  },
  requestheaderAllowedNames: {
    name: 'requestheader-allowed-names',
    topic: 'Access',
    kind: names,
    default: [],
    help: 'Common names that certificates of front proxies may have. Without it, every certificate that --requestheader-client-ca-file signed is accepted.',
  },
  requestheaderUsernameHeaders: {
    name: 'requestheader-username-headers',
    topic: 'Access',
    kind: list('names', headerName),
    default: ['x-remote-user'],
    help: 'Headers in which a front proxy names the user. The first one that is present is used.',
  },
  requestheaderGroupHeaders: {
    name: 'requestheader-group-headers',
    topic: 'Access',
    kind: list('names', headerName),
    default: ['x-remote-group'],
    help: 'Headers in which a front proxy names the groups of the user, one group in each header.',
  },
  requestheaderUidHeaders: {
    name: 'requestheader-uid-headers',
    topic: 'Access',
    kind: list('names', headerName),
    default: [],
    help: 'Headers in which a front proxy sends the uid of the user, such as X-Remote-Uid.',
  },
  requestheaderExtraHeadersPrefix: {
    name: 'requestheader-extra-headers-prefix',
    topic: 'Access',
    kind: list('prefixes', headerName),
    default: ['x-remote-extra-'],
    help: 'Prefixes of the headers in which a front proxy sends extra fields of the user.',
  },
}

const tokenFlags: FlagTable<
  Omit<AuthenticationOptions, keyof typeof certificateFlags | keyof OidcOptions>
> = {
  tokenAuthFile: {
    name: 'token-auth-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'CSV file with one bearer token per line: token, user, uid and, in quotes, comma-separated groups. Checked for changes once a second. Without it, there are no static tokens.',
  },
  serviceAccountKeyFiles: {
    name: 'service-account-key-file',
    topic: 'Access',
    kind: list('paths', (item) => notEmpty(item)),
    default: [],
    help: 'PEM files with the keys that verify service account tokens: public keys or certificates. Checked for changes once a second. Needs --service-account-issuer.',
  },
  serviceAccountIssuers: {
    name: 'service-account-issuer',
    topic: 'Access',
    kind: list('urls', (item) => notEmpty(item)),
    default: [],
    help: 'Accepted issuers of service account tokens, exactly as in the iss claim. Needs --service-account-key-file.',
  },
  apiAudiences: {
    name: 'api-audiences',
    topic: 'Access',
    kind: names,
    default: [],
    help: 'Accepted audiences (aud) of service account tokens and of tokens that the token webhook verifies. Default: the issuers of --service-account-issuer.',
  },
  authenticationTokenWebhookConfigFile: {
    name: 'authentication-token-webhook-config-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'Kubeconfig of the webhook that verifies, by TokenReview (v1), the tokens that no other method recognises. Checked for changes once a second.',
  },
  authenticationTokenWebhookCacheTtlMs: {
    name: 'authentication-token-webhook-cache-ttl',
    topic: 'Access',
    kind: duration({ positive: false }),
    default: 120_000,
    help: 'How long a response of the token webhook is cached. 0 turns the cache off.',
  },
}

export const authenticationFlags: FlagTable<AuthenticationOptions> = {
  ...certificateFlags,
  ...tokenFlags,
  ...oidcFlags,
}

export const authenticationRules: readonly Rule<AuthenticationOptions>[] = [
  ...(
    [
      'requestheaderAllowedNames',
      'requestheaderUsernameHeaders',
      'requestheaderGroupHeaders',
      'requestheaderUidHeaders',
      'requestheaderExtraHeadersPrefix',
    ] as const
  ).map((option) => noEffectWithout(authenticationFlags, option, 'requestheaderClientCaFile')),
  ...oidcRules,
  {
    about: ['serviceAccountKeyFiles', 'serviceAccountIssuers'],
    check: ({ serviceAccountKeyFiles: keys, serviceAccountIssuers: issuers }) => {
      if (keys.length === 0 && issuers.length > 0) {
        return '--service-account-issuer needs --service-account-key-file: add --service-account-key-file=<path>'
      }
      return keys.length > 0 && issuers.length === 0
        ? '--service-account-key-file needs --service-account-issuer: add --service-account-issuer=<url>'
        : undefined
    },
  },
  {
    about: ['serviceAccountIssuers', 'oidcIssuerUrl'],
    check: ({ serviceAccountIssuers, oidcIssuerUrl }) =>
      oidcIssuerUrl === undefined || !serviceAccountIssuers.includes(oidcIssuerUrl)
        ? undefined
        : '--oidc-issuer-url is also in --service-account-issuer: use different issuers',
  },
]

function notEmpty(item: string): string {
  if (item === '') throw new Mistake('an item of the list is empty: leave it out')
  return item
}

function headerName(item: string): string {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(item)) return item.toLowerCase()
  throw new Mistake(`${quote(item)} is not the name of a header: write one such as X-Remote-User`)
}
