import { type FlagTable, noEffectWithout, type Rule } from './flag.ts'
import { list, Mistake, optionalPath, optionalText, quote, text } from './kinds.ts'

export interface OidcOptions {
  readonly oidcIssuerUrl: string | undefined
  readonly oidcClientId: string | undefined
  readonly oidcCaFile: string | undefined
  readonly oidcUsernameClaim: string
  /** `-` means no prefix; undefined means the default prefix. */
  readonly oidcUsernamePrefix: string | undefined
  readonly oidcGroupsClaim: string | undefined
  readonly oidcGroupsPrefix: string | undefined
  /** Items have the form `name=value`. */
  readonly oidcRequiredClaims: readonly string[]
  readonly oidcSigningAlgorithms: readonly string[]
}

const oidcAlgorithms = [
  ...['RS256', 'RS384', 'RS512'],
  ...['ES256', 'ES384', 'ES512'],
  ...['PS256', 'PS384', 'PS512'],
]

export const oidcFlags: FlagTable<OidcOptions> = {
  oidcIssuerUrl: {
    name: 'oidc-issuer-url',
    topic: 'Access',
    kind: { ...optionalText('url'), parse: issuerUrl },
    default: undefined,
    help: 'The https URL of an OpenID Connect issuer whose ID tokens are accepted. Needs --oidc-client-id.',
  },
  oidcClientId: {
    name: 'oidc-client-id',
    topic: 'Access',
    kind: optionalText('text'),
    default: undefined,
    help: 'The audience (aud) that ID tokens must have.',
  },
  oidcCaFile: {
    name: 'oidc-ca-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the certificate authorities that verify the certificate of the issuer. Checked for changes once a second. Default: the public authorities that Node trusts.',
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
    kind: optionalText('text'),
    default: undefined,
    help: 'Prefix of user names. Without it, the prefix is the issuer and a #, or nothing if the claim is email; - means no prefix.',
  },
  oidcGroupsClaim: {
    name: 'oidc-groups-claim',
    topic: 'Access',
    kind: optionalText('text'),
    default: undefined,
    help: 'Claim that names the groups: a string or a list of strings. Without it, users of ID tokens have no groups.',
  },
  oidcGroupsPrefix: {
    name: 'oidc-groups-prefix',
    topic: 'Access',
    kind: optionalText('text'),
    default: undefined,
    help: 'Prefix of group names. Without it, a token with a group that starts with system: is refused.',
  },
  oidcRequiredClaims: {
    name: 'oidc-required-claim',
    topic: 'Access',
    kind: list('claim=value', requiredClaim),
    default: [],
    help: 'Claims that an ID token must have, with exactly this value.',
  },
  oidcSigningAlgorithms: {
    name: 'oidc-signing-algs',
    topic: 'Access',
    kind: list('algorithms', signingAlgorithm),
    default: ['RS256'],
    help: `Accepted signing algorithms of ID tokens: ${oidcAlgorithms.join(', ')}.`,
  },
}

export const oidcRules: readonly Rule<OidcOptions>[] = [
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
  ).map((option) => noEffectWithout(oidcFlags, option, 'oidcIssuerUrl')),
  {
    about: ['oidcIssuerUrl', 'oidcClientId'],
    check: ({ oidcIssuerUrl, oidcClientId }) =>
      oidcIssuerUrl === undefined || oidcClientId !== undefined
        ? undefined
        : '--oidc-issuer-url needs --oidc-client-id: add --oidc-client-id=<text>',
  },
  noEffectWithout(oidcFlags, 'oidcGroupsPrefix', 'oidcGroupsClaim'),
  {
    about: ['oidcRequiredClaims'],
    check: ({ oidcRequiredClaims }) => {
      const names = oidcRequiredClaims.map((item) => item.slice(0, item.indexOf('=')))
      const twice = names.find((name, index) => names.indexOf(name) !== index)
      return twice === undefined
        ? undefined
        : `--oidc-required-claim has two values for ${quote(twice)}: write one`
    },
  },
]

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
  throw new Mistake(`${quote(item)} is not a claim with a value: write one such as hd=example.com`)
}

function signingAlgorithm(item: string): string {
  if (oidcAlgorithms.includes(item)) return item
  throw new Mistake(`${quote(item)} is not known: write ${oidcAlgorithms.join(', ')}`)
}
