import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { devCommand, serverCommand } from './commands.ts'
import type { Options } from './options.ts'
import { parseFlags } from './parse.ts'

// All code units, lone surrogates too. (The generator of fast-check takes a second to set up.)
const anyText = fc
  .array(fc.integer({ min: 0, max: 0xffff }))
  .map((codes) => String.fromCharCode(...codes))

const etcd = '--etcd-servers=http://127.0.0.1:2379'

const defaults: Options = {
  bindAddress: '0.0.0.0',
  securePort: 6443,
  insecurePort: 0,
  certDir: '/var/run/tidings',
  tlsCertFile: undefined,
  tlsPrivateKeyFile: undefined,
  tlsMinVersion: 'VersionTLS12',
  http2MaxStreamsPerConnection: 100,
  requestTimeoutMs: 60_000,
  ui: true,
  proxyProtocolFrom: [],
  maxRequestsInflight: 400,
  maxMutatingRequestsInflight: 200,
  maxWatches: 20_000,
  maxWatchDurationMs: 3_600_000,
  maxEventBytes: 131_072,
  maxWriteBytesPerSecond: 1_048_576,
  maxWatchesPerUser: 5000,
  memoryLimitBytes: 0,
  maxClientMemoryMib: 192,
  maxClientMemoryPerUserMib: 64,
  maxConnections: 20_000,
  maxConnectionsPerUser: 2500,
  stalledResponseTimeoutMs: 10_000,
  eventRateLimitConfigFile: undefined,
  authorizationModes: ['RBAC'],
  rbacPolicyPaths: [],
  authorizationWebhookConfigFile: undefined,
  authorizationWebhookAuthorizedTtlMs: 300_000,
  authorizationWebhookUnauthorizedTtlMs: 30_000,
  authorizationWebhookAllClusters: false,
  authorizationAlwaysAllowPaths: [],
  trustLoopback: true,
  tokenAuthFile: undefined,
  anonymousAuth: false,
  clientCaFile: undefined,
  requestheaderClientCaFile: undefined,
  requestheaderAllowedNames: [],
  requestheaderUsernameHeaders: ['x-remote-user'],
  requestheaderGroupHeaders: ['x-remote-group'],
  requestheaderUidHeaders: [],
  requestheaderExtraHeadersPrefix: ['x-remote-extra-'],
  serviceAccountKeyFiles: [],
  serviceAccountIssuers: [],
  apiAudiences: [],
  oidcIssuerUrl: undefined,
  oidcClientId: undefined,
  oidcCaFile: undefined,
  oidcUsernameClaim: 'sub',
  oidcUsernamePrefix: undefined,
  oidcGroupsClaim: undefined,
  oidcGroupsPrefix: undefined,
  oidcRequiredClaims: [],
  oidcSigningAlgorithms: ['RS256'],
  authenticationTokenWebhookConfigFile: undefined,
  authenticationTokenWebhookCacheTtlMs: 120_000,
  auditPolicyFile: undefined,
  auditLogPath: undefined,
  auditLogFormat: 'json',
  auditLogMode: 'blocking',
  auditLogMaxMegabytes: 100,
  auditLogMaxAgeDays: 366,
  auditLogMaxBackups: 100,
  auditLogCompress: false,
  auditLogUnauthenticatedQps: 2,
  tracingConfigFile: undefined,
  etcdServers: ['http://127.0.0.1:2379'],
  etcdCaFile: undefined,
  etcdCertFile: undefined,
  etcdKeyFile: undefined,
  etcdPrefix: '/tidings',
  etcdQuotaBytes: 0,
  etcdHealthcheckTimeoutMs: 2000,
  groupCommit: true,
  etcdCompactionIntervalMs: 300_000,
  eventTtlMs: 3_600_000,
  history: undefined,
  historyCacheDir: undefined,
  historyCacheBytes: 10_737_418_240,
  historySegmentIntervalMs: 900_000,
  historySegmentBytes: 67_108_864,
  historyReaderMemoryBytes: 536_870_912,
  historyReaderThreads: 1,
  historyQueryTimeoutMs: 10_000,
  eventsGroup: 'events.k8s.io',
  clusterName: 'local',
  clustersFile: undefined,
  retentionPolicyFile: undefined,
  livezGracePeriodMs: 0,
  shutdownDelayMs: 0,
  shutdownSendRetryAfter: false,
  loggingFormat: 'text',
  verbosity: 0,
}

function mistakesOf(args: readonly string[]): readonly string[] {
  const result = parseFlags(serverCommand, args)
  assert.equal(result.kind, 'mistakes')
  return result.mistakes
}

const accepted: readonly (readonly [readonly string[], Partial<Options>])[] = [
  [[], {}],
  [['--secure-port=0'], { securePort: 0 }],
  [['--secure-port', '7443'], { securePort: 7443 }],
  [['--secure_port', '7443'], { securePort: 7443 }],
  [['--bind-address=::1'], { bindAddress: '::1' }],
  [['--shutdown-send-retry-after'], { shutdownSendRetryAfter: true }],
  [['--shutdown-send-retry-after=false'], { shutdownSendRetryAfter: false }],
  [['--shutdown-send-retry-after=T'], { shutdownSendRetryAfter: true }],
  [['-v', '4'], { verbosity: 4 }],
  [['-v=4'], { verbosity: 4 }],
  [['-v4'], { verbosity: 4 }],
  [['-v10'], { verbosity: 10 }],
  [['--v', '4'], { verbosity: 4 }],
  [['--v=4'], { verbosity: 4 }],
  [['--http2-max-streams-per-connection=0'], { http2MaxStreamsPerConnection: 100 }],
  [['--http2-max-streams-per-connection=250'], { http2MaxStreamsPerConnection: 250 }],
  [['--livez-grace-period=1h30m'], { livezGracePeriodMs: 5_400_000 }],
  [['--shutdown-delay-duration', '500ms'], { shutdownDelayMs: 500 }],
  [['--event-ttl=90m'], { eventTtlMs: 5_400_000 }],
  [['--event-ttl=2160h'], { eventTtlMs: 7_776_000_000 }],
  [['--event-ttl=never'], { eventTtlMs: 'never' }],
  [['--etcd-compaction-interval=0'], { etcdCompactionIntervalMs: 0 }],
  [['--etcd-compaction-interval=90s'], { etcdCompactionIntervalMs: 90_000 }],
  [['--tls-min-version=VersionTLS13'], { tlsMinVersion: 'VersionTLS13' }],
  [['--logging-format=json'], { loggingFormat: 'json' }],
  [['--cluster-name=prod-eu'], { clusterName: 'prod-eu' }],
  [['--clusters-file=/c.yaml'], { clustersFile: '/c.yaml' }],
  [['--events-group=events.example.com'], { eventsGroup: 'events.example.com' }],
  [['--help=false', '--version=false'], {}],
  [['--'], {}],
  [
    ['--tls-cert-file=a.pem', '--tls-private-key-file=b=c.pem'],
    { tlsCertFile: 'a.pem', tlsPrivateKeyFile: 'b=c.pem' },
  ],
]

for (const [args, changed] of accepted) {
  test(`parseFlags accepts "${args.join(' ')}"`, () => {
    const result = parseFlags(serverCommand, [etcd, ...args])
    assert.deepEqual(result, { kind: 'run', options: { ...defaults, ...changed } })
  })
}

test('parseFlags freezes the options and their lists', () => {
  const result = parseFlags(serverCommand, [etcd])
  assert.equal(result.kind, 'run')
  assert.ok(Object.isFrozen(result.options))
  assert.ok(Object.isFrozen(result.options.etcdServers))
})

const endpoints: readonly (readonly [readonly string[], readonly string[]])[] = [
  [['--etcd-servers=https://a:2379,https://b:2379'], ['https://a:2379', 'https://b:2379']],
  [
    ['--etcd-servers', 'http://a:1, http://b:2', '--etcd-servers=http://c:3'],
    ['http://a:1', 'http://b:2', 'http://c:3'],
  ],
  [['--etcd-servers=http://a:2379/'], ['http://a:2379']],
  [['--etcd-servers=http://[::1]:2379'], ['http://[::1]:2379']],
]

for (const [args, servers] of endpoints) {
  test(`parseFlags parses the list in "${args.join(' ')}"`, () => {
    const result = parseFlags(serverCommand, args)
    assert.equal(result.kind, 'run')
    assert.deepEqual(result.options.etcdServers, servers)
  })
}

/** Arguments after a valid --etcd-servers, and all mistakes that are reported. */
const refused: readonly (readonly [readonly string[], ...string[]])[] = [
  [['--etcd-server=x'], 'unknown flag --etcd-server: did you mean --etcd-servers?'],
  [['--Secure-Port=1'], 'unknown flag --Secure-Port: did you mean --secure-port?'],
  [['--frobnicate'], 'unknown flag --frobnicate: "tidings --help" lists all flags'],
  [['-x'], 'unknown flag -x: "tidings --help" lists all flags'],
  [['--\u001b[31m'], 'unknown flag "--\\u001b[31m": "tidings --help" lists all flags'],
  [
    ['dev'],
    'unexpected argument "dev": tidings takes flags only, written --name=value; its commands are "tidings dev", "tidings history"',
  ],
  [
    ['-'],
    'unexpected argument "-": tidings takes flags only, written --name=value; its commands are "tidings dev", "tidings history"',
  ],
  [
    ['--', '-v=4'],
    'unexpected argument "-v=4": tidings takes flags only, written --name=value; its commands are "tidings dev", "tidings history"',
  ],
  [
    ['servee'],
    'unexpected argument "servee": tidings takes flags only, written --name=value; its commands are "tidings dev", "tidings history"',
  ],
  [
    ['--shutdown-send-retry-after', 'false'],
    'unexpected argument "false": write --shutdown-send-retry-after=false',
  ],
  [
    ['--shutdown-send-retry-after=maybe'],
    '--shutdown-send-retry-after: "maybe" is neither true nor false',
  ],
  [['--secure-port'], '--secure-port needs a value: write --secure-port=<int>'],
  [['--cert-dir='], '--cert-dir needs a value: write --cert-dir=<path>'],
  [
    ['--secure-port', '--bind-address=::'],
    '--secure-port needs a value: write --secure-port=<int>',
  ],
  [['--help=maybe'], '--help takes no value: write --help'],
  [
    ['--secure-port=1', '--secure_port', '2'],
    '--secure-port is given 2 times ("1", "2"): give it once',
  ],
  [['-v4', '--v=4'], '--v is given 2 times ("4", "4"): give it once'],
  [
    ['--secure-port=70000'],
    '--secure-port: "70000" is not a port in range: write one between 0 and 65535',
  ],
  [
    ['--secure-port', '-1'],
    '--secure-port: "-1" is not a port in range: write one between 0 and 65535',
  ],
  [['-v', 'high'], '-v: "high" is not a level in range: write one between 0 and 10'],
  [
    ['--http2-max-streams-per-connection=1e9'],
    '--http2-max-streams-per-connection: "1e9" is not a whole number in range: write one between 0 and 1000',
  ],
  [
    ['--bind-address=localhost'],
    '--bind-address: "localhost" is not an IP address: write one such as 0.0.0.0, 127.0.0.1 or ::',
  ],
  [['--bind-address=[::]'], '--bind-address: write ::, without the brackets'],
  [['--request-timeout=30'], '--request-timeout: "30" has no unit: write 30s, 30m or 30ms'],
  [
    ['--request-timeout=0'],
    '--request-timeout: 0 is too short: write a duration above 0s, such as 1m or 500ms',
  ],
  [
    ['--livez-grace-period=-1s'],
    '--livez-grace-period: -1s is negative: write a duration of 0s or more',
  ],
  [
    ['--livez-grace-period=1000h'],
    '--livez-grace-period: 1000h is too long: write at most 596h31m23.647s',
  ],
  [
    ['--event-ttl=0'],
    '--event-ttl: 0 would retain everything until the store is full: write a duration such as 1h, or never if that is what you want',
  ],
  [
    ['--event-ttl=0s'],
    '--event-ttl: 0s would retain everything until the store is full: write a duration such as 1h, or never if that is what you want',
  ],
  [['--event-ttl=500ms'], '--event-ttl: 500ms is too short: write 1s or more, or never'],
  [['--event-ttl=-1h'], '--event-ttl: -1h is too short: write 1s or more, or never'],
  [['--event-ttl=1d'], '--event-ttl: "1d" counts in days: write hours, such as 24h'],
  [
    ['--etcd-compaction-interval=-5m'],
    '--etcd-compaction-interval: -5m is negative: write a duration of 0s or more',
  ],
  [
    ['--tls-min-version=VersionTLS11'],
    '--tls-min-version: "VersionTLS11" is refused (TLS 1.1 is broken and retired): write VersionTLS12 or VersionTLS13',
  ],
  [
    ['--tls-min-version=1.2'],
    '--tls-min-version: "1.2" is not known: write VersionTLS12 or VersionTLS13',
  ],
  [['--logging-format=xml'], '--logging-format: "xml" is not known: write text or json'],
  [['--logging-format=toString'], '--logging-format: "toString" is not known: write text or json'],
  [
    ['--etcd-prefix=registry'],
    '--etcd-prefix: "registry" does not start with a slash: write "/registry"',
  ],
  [['--etcd-prefix=/a/'], '--etcd-prefix: "/a/" ends with a slash: write "/a"'],
  [['--etcd-prefix=/'], '--etcd-prefix: "/" ends with a slash: write a name, such as /tidings'],
  [
    ['--events-group=events'],
    '--events-group: "events" is not a group name: write lower-case letters, digits and hyphens in two parts or more with dots between them, such as events.k8s.io',
  ],
  [
    ['--tls-cert-file=a.pem'],
    '--tls-cert-file needs --tls-private-key-file: add --tls-private-key-file=<path>',
  ],
  [
    ['--tls-private-key-file=a.pem'],
    '--tls-private-key-file needs --tls-cert-file: add --tls-cert-file=<path>',
  ],
  [['--etcd-keyfile=a.pem'], '--etcd-keyfile needs --etcd-certfile: add --etcd-certfile=<path>'],
  [
    ['--etcd-cafile=a.pem'],
    '--etcd-cafile has no effect on http: write https addresses in --etcd-servers, or leave it out',
  ],
  [
    ['--secure-port=8443', '--insecure-port=8443'],
    '--secure-port and --insecure-port are both 8443: give them different ports',
  ],
  [
    ['--proxy-protocol-from=10.0.0.0/33'],
    '--proxy-protocol-from: "10.0.0.0/33" is not an address range: write one such as 10.0.0.5, 10.0.0.0/24 or fd00::/64',
  ],
  [
    ['--proxy-protocol-from=10.0.0.5,proxy'],
    '--proxy-protocol-from: "proxy" is not an address range: write one such as 10.0.0.5, 10.0.0.0/24 or fd00::/64',
  ],
  [
    ['--proxy-protocol-from=::/0'],
    '--proxy-protocol-from: "::/0" would let every client claim any address: list your proxies',
  ],
  [
    ['--etcd-servers=http://127.0.0.1:2379/'],
    '--etcd-servers: "http://127.0.0.1:2379" is listed twice: list it once',
  ],
  [
    ['--etcd-servers=https://b:2379'],
    '--etcd-servers mixes http and https: use one scheme for all of them',
  ],
  [
    ['--etcd-servers=etcd-0:2379'],
    '--etcd-servers: "etcd-0:2379" has no scheme: write http://etcd-0:2379 or https://etcd-0:2379',
  ],
  [
    ['--etcd-servers=https://etcd-0'],
    '--etcd-servers: "https://etcd-0" has no port: write https://etcd-0:2379',
  ],
  [
    ['--etcd-servers=http://etcd-0:99999'],
    '--etcd-servers: "http://etcd-0:99999" has a port out of range: write one between 1 and 65535',
  ],
  [
    ['--etcd-servers=ftp://etcd-0:2379'],
    '--etcd-servers: "ftp://etcd-0:2379" has the scheme ftp: write http or https',
  ],
  [
    ['--etcd-servers=http://root:hunter2@etcd-0:2379'],
    '--etcd-servers: an address contains a user name: remove it, as in http://127.0.0.1:2379',
  ],
  [
    ['--etcd-servers=http://etcd-0:2379/v3'],
    '--etcd-servers: "http://etcd-0:2379/v3" is not an address: write scheme, host and port only, such as http://127.0.0.1:2379',
  ],
  [
    ['--etcd-servers=http://a:1,'],
    '--etcd-servers: an address is empty: write one such as http://127.0.0.1:2379',
  ],
  [
    ['--etcd-servers=unix://run/etcd.sock'],
    '--etcd-servers: "unix://run/etcd.sock" has the scheme unix: write http or https',
  ],
]

for (const [args, ...mistakes] of refused) {
  test(`parseFlags reports what is wrong with ${JSON.stringify(args.join(' '))}`, () => {
    assert.deepEqual(mistakesOf([etcd, ...args]), mistakes)
  })
}

describe('parseFlags', () => {
  test('rejects an empty command line because --etcd-servers is missing', () => {
    assert.deepEqual(mistakesOf([]), [
      '--etcd-servers is required: write --etcd-servers=http://127.0.0.1:2379, or use "tidings dev"',
    ])
  })

  test('reports all mistakes in one run, each once', () => {
    const args = [
      '--secure-prt=1',
      '--request-timeout=1x',
      'stray',
      '--etcd-certfile=c.pem',
      '--secure-port=1',
      '--secure-port=2',
      '--bind-address',
    ]
    assert.deepEqual(mistakesOf(args), [
      'unknown flag --secure-prt: did you mean --secure-port?',
      '--request-timeout: "1x" has an unknown unit "x": write h, m, s, ms, us or ns, such as 1m30s',
      'unexpected argument "stray": tidings takes flags only, written --name=value; its commands are "tidings dev", "tidings history"',
      '--bind-address needs a value: write --bind-address=<ip>',
      '--secure-port is given 2 times ("1", "2"): give it once',
      '--etcd-servers is required: write --etcd-servers=http://127.0.0.1:2379, or use "tidings dev"',
      '--etcd-certfile needs --etcd-keyfile: add --etcd-keyfile=<path>',
    ])
  })

  test('does not report an invalid flag again by the rules about it', () => {
    assert.deepEqual(mistakesOf(['--etcd-servers=nonsense', '--etcd-cafile=x']), [
      '--etcd-servers: "nonsense" is not an address: write scheme, host and port only, such as http://127.0.0.1:2379',
    ])
  })

  test('accepts certificate files for https to etcd', () => {
    const args = [
      '--etcd-servers=https://a:2379',
      '--etcd-cafile=ca',
      '--etcd-certfile=c',
      '--etcd-keyfile=k',
    ]
    assert.equal(parseFlags(serverCommand, args).kind, 'run')
  })

  test('accepts --help and -h despite other mistakes', () => {
    for (const args of [['--help'], ['-h'], ['--nonsense', '-h', '--secure-port=x']]) {
      assert.equal(parseFlags(serverCommand, args).kind, 'help')
    }
  })

  test('accepts --version without --etcd-servers, but not with a mistake', () => {
    assert.deepEqual(parseFlags(serverCommand, ['--version']), { kind: 'version' })
    assert.equal(parseFlags(serverCommand, ['--version', '--nonsense']).kind, 'mistakes')
  })

  test('never throws, whatever the arguments', () => {
    const words = fc.oneof(
      anyText,
      fc.string().map((text) => `--${text}`),
      fc.constantFrom('--', '-', '-v', '-v9', '-h', '--v', '--secure-port', '--etcd-servers', etcd),
      fc
        .tuple(
          fc.constantFrom(...Object.values(devCommand.flags).map((flag) => flag.name)),
          anyText,
        )
        .map(([name, value]) => `--${name}=${value}`),
    )
    fc.assert(
      fc.property(fc.array(words), fc.option(fc.integer(), { nil: undefined }), (args, columns) => {
        const kinds = ['run', 'help', 'version', 'mistakes']
        assert.ok(kinds.includes(parseFlags(serverCommand, args, { columns }).kind))
        assert.ok(kinds.includes(parseFlags(devCommand, args, { columns }).kind))
      }),
      { numRuns: 500 },
    )
  })
})

describe('tidings dev', () => {
  test('runs without --etcd-servers and accepts the server flags and its own', () => {
    const result = parseFlags(devCommand, ['--etcd-binary=/opt/etcd', '-v=2'])
    assert.deepEqual(result, {
      kind: 'run',
      options: {
        ...defaults,
        etcdServers: [],
        bindAddress: '127.0.0.1',
        securePort: 0,
        verbosity: 2,
        etcdBinary: '/opt/etcd',
        dataDir: undefined,
        mirror: false,
        context: undefined,
        kubeconfig: undefined,
      },
    })
  })

  test('rejects --context and --clusters-file where they would have no effect', () => {
    assert.deepEqual(parseFlags(devCommand, ['--context=prod']), {
      kind: 'mistakes',
      mistakes: ['--context has no effect without --mirror: add --mirror'],
    })
    assert.deepEqual(parseFlags(devCommand, ['--mirror', '--clusters-file=x']), {
      kind: 'mistakes',
      mistakes: [
        '--mirror and --clusters-file cannot be combined: --mirror writes its own clusters file',
      ],
    })
  })

  test('rejects a flag that it sets itself, together with its value', () => {
    assert.deepEqual(parseFlags(devCommand, ['--etcd-servers', 'http://a:1']), {
      kind: 'mistakes',
      mistakes: ['--etcd-servers: tidings dev starts its own etcd: leave the flag out'],
    })
  })

  test('does not suggest a flag that it rejects', () => {
    assert.deepEqual(parseFlags(devCommand, ['--etcd-cafil=x']), {
      kind: 'mistakes',
      mistakes: ['unknown flag --etcd-cafil: "tidings dev --help" lists all flags'],
    })
  })
})
