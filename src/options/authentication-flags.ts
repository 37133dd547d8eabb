import type { FlagTable, Rule } from './flag.ts'
import { boolean, duration, list, Mistake, optionalPath, quote, text } from './kinds.ts'

/** How callers show who they are. Times are in milliseconds. */
export interface AuthenticationOptions {
  readonly anonymousAuth: boolean
  readonly clientCaFile: string | undefined

  readonly requestheaderClientCaFile: string | undefined
  readonly requestheaderAllowedNames: readonly string[]
  /** Names of headers are in lower case. */
  readonly requestheaderUsernameHeaders: readonly string[]
  readonly requestheaderGroupHeaders: readonly string[]
  readonly requestheaderUidHeaders: readonly string[]
  readonly requestheaderExtraHeadersPrefix: readonly string[]

  readonly serviceAccountKeyFiles: readonly string[]
  readonly serviceAccountIssuers: readonly string[]
  readonly apiAudiences: readonly string[]

  readonly oidcIssuerUrl: string | undefined
  readonly oidcClientId: string | undefined
  readonly oidcCaFile: string | undefined
  readonly oidcUsernameClaim: string
  /** `-` for none; undefined for one made of the issuer. */
  readonly oidcUsernamePrefix: string | undefined
  readonly oidcGroupsClaim: string | undefined
  readonly oidcGroupsPrefix: string | undefined
  /** Each is `name=value`. */
  readonly oidcRequiredClaims: readonly string[]
  readonly oidcSigningAlgorithms: readonly string[]

  readonly authenticationTokenWebhookConfigFile: string | undefined
  readonly authenticationTokenWebhookCacheTtlMs: number
}

const oidcAlgorithms = [
  ...['RS256', 'RS384', 'RS512'],
  ...['ES256', 'ES384', 'ES512'],
  ...['PS256', 'PS384', 'PS512'],
]

/** Text that may be left out. */
const optionalText = { ...optionalPath, placeholder: 'text' }
const words = list('names', (item) => notEmpty(item))

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
    help: 'Let callers without credentials be system:anonymous in the group system:unauthenticated, instead of answering 401. What they may do is then a matter of authorization.',
  },
  clientCaFile: {
    name: 'client-ca-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the authorities for client certificates: the common name is the user, organizations are its groups. Looked at once a second. Without it no certificate makes a user.',
  },
  requestheaderClientCaFile: {
    name: 'requestheader-client-ca-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the authorities for certificates of front proxies, which name users in headers. No authority may be in --client-ca-file too. Looked at once a second. Without it such headers mean nothing.',
  },
  requestheaderAllowedNames: {
    name: 'requestheader-allowed-names',
    topic: 'Access',
    kind: words,
    default: [],
    help: 'Common names of the certificates that front proxies may have. Without it, every one of --requestheader-client-ca-file will do.',
  },
  requestheaderUsernameHeaders: {
    name: 'requestheader-username-headers',
    topic: 'Access',
    kind: list('names', headerName),
    default: ['x-remote-user'],
    help: 'Headers in which a front proxy names the user. The first that is there counts.',
  },
  requestheaderGroupHeaders: {
    name: 'requestheader-group-headers',
    topic: 'Access',
    kind: list('names', headerName),
    default: ['x-remote-group'],
    help: 'Headers in which a front proxy names groups, one in each.',
  },
  requestheaderUidHeaders: {
    name: 'requestheader-uid-headers',
    topic: 'Access',
    kind: list('names', headerName),
    default: [],
    help: 'Headers in which a front proxy gives the uid of the user, such as X-Remote-Uid.',
  },
  requestheaderExtraHeadersPrefix: {
    name: 'requestheader-extra-headers-prefix',
    topic: 'Access',
    kind: list('prefixes', headerName),
    default: ['x-remote-extra-'],
    help: 'How the headers start in which a front proxy says more of the user.',
  },
}

const signedTokenFlags: FlagTable<Omit<AuthenticationOptions, keyof typeof certificateFlags>> = {
  serviceAccountKeyFiles: {
    name: 'service-account-key-file',
    topic: 'Access',
    kind: list('paths', (item) => notEmpty(item)),
    default: [],
    help: 'PEM files with the keys that verify tokens of service accounts: public keys, or certificates. Looked at once a second. Needs --service-account-issuer.',
  },
  serviceAccountIssuers: {
    name: 'service-account-issuer',
    topic: 'Access',
    kind: list('urls', (item) => notEmpty(item)),
    default: [],
    help: 'Who issues tokens of service accounts, just as it stands in them. Needs --service-account-key-file.',
  },
  apiAudiences: {
    name: 'api-audiences',
    topic: 'Access',
    kind: words,
    default: [],
    help: 'What tokens of service accounts, and those that the token webhook is asked for, must be meant for. Without it, the issuers of --service-account-issuer.',
  },
  oidcIssuerUrl: {
    name: 'oidc-issuer-url',
    topic: 'Access',
    kind: { ...optionalPath, placeholder: 'url', parse: issuerUrl },
    default: undefined,
    help: 'The https URL of an OpenID Connect issuer whose ID tokens are taken. Needs --oidc-client-id.',
  },
  oidcClientId: {
    name: 'oidc-client-id',
    topic: 'Access',
    kind: optionalText,
    default: undefined,
    help: 'What ID tokens must be meant for (aud).',
  },
  oidcCaFile: {
    name: 'oidc-ca-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the authorities that may vouch for the issuer. Looked at once a second. Without it, the public authorities that Node knows.',
  },
  oidcUsernameClaim: {
    name: 'oidc-username-claim',
    topic: 'Access',
    kind: text('claim'),
    default: 'sub',
    help: 'Claim that names the user. With email, email_verified must not be false.',
  },
  oidcUsernamePrefix: {
    name: 'oidc-username-prefix',
    topic: 'Access',
    kind: optionalText,
    default: undefined,
    help: 'Put before the name of the user. Without it, the issuer and a #, unless the claim is email; - means nothing is put there.',
  },
  oidcGroupsClaim: {
    name: 'oidc-groups-claim',
    topic: 'Access',
    kind: optionalText,
    default: undefined,
    help: 'Claim that names groups: a text or a list of them. Without it, ID tokens give no groups.',
  },
  oidcGroupsPrefix: {
    name: 'oidc-groups-prefix',
    topic: 'Access',
    kind: optionalText,
    default: undefined,
    help: 'Put before each group. Without it, a token with a group that starts with system: is refused.',
  },
  oidcRequiredClaims: {
    name: 'oidc-required-claim',
    topic: 'Access',
    kind: list('claim=value', requiredClaim),
    default: [],
    help: 'Claims that an ID token must have, with just this value.',
  },
  oidcSigningAlgorithms: {
    name: 'oidc-signing-algs',
    topic: 'Access',
    kind: list('algorithms', signingAlgorithm),
    default: ['RS256'],
    help: `How ID tokens may be signed: ${oidcAlgorithms.join(', ')}.`,
  },
  authenticationTokenWebhookConfigFile: {
    name: 'authentication-token-webhook-config-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'Kubeconfig with the server that is asked by TokenReview (v1) for tokens that nobody else knows. Looked at once a second.',
  },
  authenticationTokenWebhookCacheTtlMs: {
    name: 'authentication-token-webhook-cache-ttl',
    topic: 'Access',
    kind: duration({ positive: false }),
    default: 120_000,
    help: 'How long an answer of the token webhook is good for. 0 asks every time.',
  },
}

/** One row per flag. */
export const authenticationFlags: FlagTable<AuthenticationOptions> = {
  ...certificateFlags,
  ...signedTokenFlags,
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
  ).map((option) => idleWithout(option, 'requestheaderClientCaFile')),
  ...(
    [
      'oidcClientId',
      'oidcCaFile',
      'oidcUsernameClaim',
      'oidcUsernamePrefix',
      'oidcGroupsClaim',
      'oidcGroupsPrefix',
      'oidcRequiredClaims',
      'oidcSigningAlgorithms',
    ] as const
  ).map((option) => idleWithout(option, 'oidcIssuerUrl')),
  {
    about: ['oidcIssuerUrl', 'oidcClientId'],
    check: ({ oidcIssuerUrl, oidcClientId }) =>
      oidcIssuerUrl === undefined || oidcClientId !== undefined
        ? undefined
        : '--oidc-issuer-url needs --oidc-client-id: add --oidc-client-id=<text>',
  },
  idleWithout('oidcGroupsPrefix', 'oidcGroupsClaim'),
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
        : '--oidc-issuer-url is among --service-account-issuer: give each its own issuer',
  },
  {
    about: ['oidcRequiredClaims'],
    check: ({ oidcRequiredClaims }) => {
      const names = oidcRequiredClaims.map((item) => item.slice(0, item.indexOf('=')))
      const twice = names.find((name, index) => names.indexOf(name) !== index)
      return twice === undefined
        ? undefined
        : `--oidc-required-claim asks for two values of ${quote(twice)}: ask for one`
    },
  },
]

/** A flag that would be silently without effect. */
function idleWithout(
  option: keyof AuthenticationOptions,
  needed: keyof AuthenticationOptions,
): Rule<AuthenticationOptions> {
  const name = authenticationFlags[needed].name
  return {
    about: [option, needed],
    check: (options) =>
      options[needed] !== undefined || options[option] === authenticationFlags[option].default
        ? undefined
        : `--${authenticationFlags[option].name} has no effect without --${name}: add --${name}, or leave it out`,
  }
}

function notEmpty(item: string): string {
  if (item === '') throw new Mistake('an item of the list is empty: leave it out')
  return item
}

function headerName(item: string): string {
  if (/^[\w!#$%&'*+.^`|~-]+$/.test(item)) return item.toLowerCase()
  throw new Mistake(`${quote(item)} is not the name of a header: write one such as X-Remote-User`)
}

function issuerUrl(value: string): string {
  const url = URL.parse(value)
  const isPlain =
    url?.protocol === 'https:' && url.search === '' && url.hash === '' && url.username === ''
  if (isPlain && !/[?#]/.test(value)) return value
  throw new Mistake(
    `${quote(value)} is not the URL of an issuer: write one such as https://issuer.example.com, without query and fragment`,
  )
}

function requiredClaim(item: string): string {
  if (/^[^=]+=./s.test(item)) return item
  throw new Mistake(`${quote(item)} is not a claim and its value: write one such as hd=example.com`)
}

function signingAlgorithm(item: string): string {
  if (oidcAlgorithms.includes(item)) return item
  throw new Mistake(`${quote(item)} is not known: write ${oidcAlgorithms.join(', ')}`)
}
