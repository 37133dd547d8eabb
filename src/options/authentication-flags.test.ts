import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AuthenticationOptions } from './authentication-flags.ts'
import { serverCommand } from './commands.ts'
import { parseFlags } from './parse.ts'

const etcd = '--etcd-servers=http://127.0.0.1:2379'
const oidc = ['--oidc-issuer-url=https://issuer.example', '--oidc-client-id=tidings']

describe('authentication flags', () => {
  for (const [flags, expected] of [
    [
      ['--requestheader-client-ca-file=p.crt', '--requestheader-username-headers=X-Me,X-User'],
      { requestheaderUsernameHeaders: ['x-me', 'x-user'] },
    ],
    [
      [
        '--service-account-key-file=a.pem',
        '--service-account-key-file=b.pem,c.pem',
        '--service-account-issuer=https://a',
      ],
      {
        serviceAccountKeyFiles: ['a.pem', 'b.pem', 'c.pem'],
        serviceAccountIssuers: ['https://a'],
      },
    ],
    [
      [...oidc, '--oidc-required-claim=hd=a.example', '--oidc-required-claim=x=y=z'],
      { oidcRequiredClaims: ['hd=a.example', 'x=y=z'] },
    ],
    [['--anonymous-auth'], { anonymousAuth: true }],
    [['--authentication-token-webhook-cache-ttl=0'], { authenticationTokenWebhookCacheTtlMs: 0 }],
  ] as const satisfies readonly (readonly [readonly string[], Partial<AuthenticationOptions>])[]) {
    test(`parseFlags accepts ${flags.join(' ')}`, () => {
      const parsed = parseFlags(serverCommand, [etcd, ...flags])
      assert.equal(parsed.kind, 'run')
      assert.deepEqual({ ...parsed.options, ...expected }, parsed.options)
    })
  }

  for (const [flags, ...mistakes] of [
    [
      ['--requestheader-allowed-names=front-proxy'],
      '--requestheader-allowed-names has no effect without --requestheader-client-ca-file: add --requestheader-client-ca-file, or leave it out',
    ],
    [
      ['--requestheader-client-ca-file=p.crt', '--requestheader-group-headers=X Group'],
      '--requestheader-group-headers: "X Group" is not the name of a header: write one such as X-Remote-User',
    ],
    [
      ['--oidc-issuer-url=https://issuer.example'],
      '--oidc-issuer-url needs --oidc-client-id: add --oidc-client-id=<text>',
    ],
    [
      ['--oidc-client-id=tidings', '--oidc-signing-algs=ES256'],
      '--oidc-client-id has no effect without --oidc-issuer-url: add --oidc-issuer-url, or leave it out',
      '--oidc-signing-algs has no effect without --oidc-issuer-url: add --oidc-issuer-url, or leave it out',
    ],
    [
      [...oidc, '--oidc-groups-prefix=x:'],
      '--oidc-groups-prefix has no effect without --oidc-groups-claim: add --oidc-groups-claim, or leave it out',
    ],
    [
      [...oidc, '--oidc-signing-algs=HS256'],
      '--oidc-signing-algs: "HS256" is not known: write RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512',
    ],
    [
      [...oidc, '--oidc-required-claim=hd'],
      '--oidc-required-claim: "hd" is not a claim with a value: write one such as hd=example.com',
    ],
    [
      [...oidc, '--oidc-required-claim=hd=a,hd=b'],
      '--oidc-required-claim has two values for "hd": write one',
    ],
    [
      ['--service-account-key-file=a.pem'],
      '--service-account-key-file needs --service-account-issuer: add --service-account-issuer=<url>',
    ],
    [
      ['--service-account-issuer=https://a'],
      '--service-account-issuer needs --service-account-key-file: add --service-account-key-file=<path>',
    ],
    [
      [...oidc, '--service-account-key-file=a', '--service-account-issuer=https://issuer.example'],
      '--oidc-issuer-url is also in --service-account-issuer: use different issuers',
    ],
  ] as const) {
    test(`parseFlags rejects ${flags.join(' ')}`, () => {
      const parsed = parseFlags(serverCommand, [etcd, ...flags])
      assert.deepEqual(parsed, { kind: 'mistakes', mistakes })
    })
  }

  for (const url of ['http://issuer', 'issuer', 'https://a?b', 'https://a#', 'https://u@a']) {
    test(`parseFlags rejects ${url} as an issuer`, () => {
      const parsed = parseFlags(serverCommand, [
        etcd,
        '--oidc-client-id=a',
        `--oidc-issuer-url=${url}`,
      ])
      assert.equal(parsed.kind, 'mistakes')
    })
  }
})
