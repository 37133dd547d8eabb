import { type AuditOptions, auditFlags } from './audit-flags.ts'
import { type AuthenticationOptions, authenticationFlags } from './authentication-flags.ts'
import { type AuthorizationOptions, authorizationFlags } from './authorization-flags.ts'
import type { FlagTable } from './flag.ts'
import {
  boolean,
  choice,
  duration,
  integer,
  ipAddress,
  lifetime,
  list,
  optionalPath,
  port,
  text,
} from './kinds.ts'
import { type LimitOptions, limitFlags } from './limit-flags.ts'
import { addressRange, etcdEndpoint, etcdPrefixMistake, eventsGroupMistake } from './values.ts'

/** Everything the command line decides, checked and frozen. Times are in milliseconds. */
export interface Options
  extends AuthenticationOptions,
    AuditOptions,
    AuthorizationOptions,
    LimitOptions {
  readonly bindAddress: string
  /** 0 asks for any free port. */
  readonly securePort: number
  /** 0 means there is none. */
  readonly insecurePort: number
  readonly certDir: string
  readonly tlsCertFile: string | undefined
  readonly tlsPrivateKeyFile: string | undefined
  readonly tlsMinVersion: TlsVersion
  /** Never 0: the flag's 0 has become the default number by now. */
  readonly http2MaxStreamsPerConnection: number
  readonly requestTimeoutMs: number

  /** Addresses and CIDR ranges. */
  readonly proxyProtocolFrom: readonly string[]

  readonly trustLoopback: boolean
  readonly tokenAuthFile: string | undefined

  /** At least one, all of one scheme: http or https. No trailing slash. */
  readonly etcdServers: readonly string[]
  readonly etcdCaFile: string | undefined
  readonly etcdCertFile: string | undefined
  readonly etcdKeyFile: string | undefined
  /** Starts with a slash and does not end with one. */
  readonly etcdPrefix: string
  readonly etcdHealthcheckTimeoutMs: number
  /** 0 means that etcd is asked. */
  readonly etcdQuotaBytes: number
  readonly groupCommit: boolean
  /** 0 means never. */
  readonly etcdCompactionIntervalMs: number
  /** Counted from the last change of an event. */
  readonly eventTtlMs: number | 'never'

  readonly eventsGroup: string

  readonly livezGracePeriodMs: number
  readonly shutdownDelayMs: number
  readonly shutdownSendRetryAfter: boolean

  readonly loggingFormat: LoggingFormat
  /** 0 to 10. */
  readonly verbosity: number
}

export type TlsVersion = 'VersionTLS12' | 'VersionTLS13'
export type LoggingFormat = 'text' | 'json'

/** More would let one connection hold memory for streams that no limit has counted yet. */
const http2StreamsMax = 1000
const http2StreamsDefault = 100

/** One row per flag. To add one: a field in Options and a row here. */
export const serverFlags: FlagTable<Options> = {
  bindAddress: {
    name: 'bind-address',
    topic: 'Serving',
    kind: ipAddress,
    default: '0.0.0.0',
    help: 'IP address on which --secure-port listens. 0.0.0.0 means every IPv4 address, :: every address of both kinds.',
  },
  securePort: {
    name: 'secure-port',
    topic: 'Serving',
    kind: port,
    default: 6443,
    help: 'Port for HTTPS (HTTP/2 and HTTP/1.1). 0 takes any free port and prints it in the log.',
  },
  insecurePort: {
    name: 'insecure-port',
    topic: 'Serving',
    kind: port,
    default: 0,
    help: 'Port for plain HTTP, on the loopback interface only. 0 turns it off.',
  },
  certDir: {
    name: 'cert-dir',
    topic: 'Serving',
    kind: text('path'),
    default: '/var/run/tidings',
    help: 'Directory that keeps the self-signed certificate made when --tls-cert-file and --tls-private-key-file are not given.',
  },
  tlsCertFile: {
    name: 'tls-cert-file',
    topic: 'Serving',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the certificate to serve, followed by its intermediates. Needs --tls-private-key-file.',
  },
  tlsPrivateKeyFile: {
    name: 'tls-private-key-file',
    topic: 'Serving',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the private key of --tls-cert-file.',
  },
  tlsMinVersion: {
    name: 'tls-min-version',
    topic: 'Serving',
    kind: choice(['VersionTLS12', 'VersionTLS13'], {
      VersionTLS10: 'TLS 1.0 is broken and retired',
      VersionTLS11: 'TLS 1.1 is broken and retired',
    }),
    default: 'VersionTLS12',
    help: 'Oldest TLS version a client may use.',
  },
  http2MaxStreamsPerConnection: {
    name: 'http2-max-streams-per-connection',
    topic: 'Serving',
    kind: integer({ min: 0, max: http2StreamsMax, zeroMeans: http2StreamsDefault }),
    default: http2StreamsDefault,
    help: `Requests and watches one HTTP/2 connection may have open at a time, at most ${http2StreamsMax}. 0 means ${http2StreamsDefault}.`,
  },
  requestTimeoutMs: {
    name: 'request-timeout',
    topic: 'Serving',
    kind: duration({ positive: true }),
    default: 60_000,
    help: 'How long a request may take before it is answered with a timeout. Watches are not bound by it.',
  },
  proxyProtocolFrom: {
    name: 'proxy-protocol-from',
    topic: 'Serving',
    kind: list('cidrs', addressRange),
    default: [],
    help: 'Addresses or CIDR ranges of proxies whose connections to --secure-port start with a PROXY protocol header, version 1 or 2, that names the caller for the log, the audit log and limits. A connection from them without one is closed; nobody else may send one.',
  },
  ...limitFlags,
  trustLoopback: {
    name: 'trust-loopback',
    topic: 'Access',
    kind: boolean,
    default: true,
    help: 'Let processes on this host read health, version and metrics without credentials. Turn it off when a proxy on this host forwards connections of others without PROXY protocol headers: all of them would come from this host.',
  },
  tokenAuthFile: {
    name: 'token-auth-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'CSV file with a bearer token on each line: token, user, uid and, in quotes, groups with commas between them. Looked at once a second. Without it nobody has a token.',
  },
  ...authorizationFlags,
  ...auditFlags,
  ...authenticationFlags,
  etcdServers: {
    name: 'etcd-servers',
    topic: 'Storage',
    kind: list('urls', etcdEndpoint),
    default: [],
    help: 'Members of the etcd cluster, with commas between them or the flag repeated, all http or all https, such as https://etcd-0:2379. Required.',
  },
  etcdCaFile: {
    name: 'etcd-cafile',
    topic: 'Storage',
    kind: optionalPath,
    default: undefined,
    help: "PEM file with the authorities that may vouch for etcd's certificate. Looked at once a second. Without it, the public authorities that Node knows.",
  },
  etcdCertFile: {
    name: 'etcd-certfile',
    topic: 'Storage',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the client certificate shown to etcd. Looked at once a second. Needs --etcd-keyfile.',
  },
  etcdKeyFile: {
    name: 'etcd-keyfile',
    topic: 'Storage',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the private key of --etcd-certfile.',
  },
  etcdPrefix: {
    name: 'etcd-prefix',
    topic: 'Storage',
    kind: text('path', etcdPrefixMistake),
    default: '/tidings',
    help: "Start of every key in etcd, and of no other program's: values under it that tidings did not write end the start. Starts with a slash and does not end with one.",
  },
  etcdQuotaBytes: {
    name: 'etcd-quota-bytes',
    topic: 'Storage',
    kind: integer({ min: 0, max: 2 ** 45 }),
    default: 0,
    help: "The --quota-backend-bytes of etcd: --max-write-bytes-per-second allows less while more than half of it is in use. 0 learns it from etcd's metrics, which it serves where clients connect.",
  },
  etcdHealthcheckTimeoutMs: {
    name: 'etcd-healthcheck-timeout',
    topic: 'Storage',
    kind: duration({ positive: true }),
    default: 2000,
    help: 'How long etcd may take to answer a health check before it counts as failed.',
  },
  etcdCompactionIntervalMs: {
    name: 'etcd-compaction-interval',
    topic: 'Storage',
    kind: duration({ positive: false }),
    default: 300_000,
    help: "How often one of the replicas makes etcd forget its history, all but the last interval's: of the whole etcd, whatever the prefix. At least 1m; 0 leaves that to somebody else.",
  },
  eventTtlMs: {
    name: 'event-ttl',
    topic: 'Storage',
    kind: lifetime,
    default: 3_600_000,
    help: 'How long an event is kept after its last change. With never, nothing is deleted by itself and etcd fills up. At least 1s.',
  },
  groupCommit: {
    name: 'group-commit',
    topic: 'Storage',
    kind: boolean,
    default: true,
    help: 'Let writes that arrive together share one transaction of etcd. Off only to compare.',
  },
  eventsGroup: {
    name: 'events-group',
    topic: 'API',
    kind: text('name', eventsGroupMistake),
    default: 'events.k8s.io',
    help: 'API group under which events are served.',
  },
  livezGracePeriodMs: {
    name: 'livez-grace-period',
    topic: 'Health and shutdown',
    kind: duration({ positive: false }),
    default: 0,
    help: 'How long after its start the server may still be starting up before /livez says so.',
  },
  shutdownDelayMs: {
    name: 'shutdown-delay-duration',
    topic: 'Health and shutdown',
    kind: duration({ positive: false }),
    default: 0,
    help: 'How long to go on serving after a signal to stop, with /readyz failing, so that load balancers can look elsewhere first.',
  },
  shutdownSendRetryAfter: {
    name: 'shutdown-send-retry-after',
    topic: 'Health and shutdown',
    kind: boolean,
    default: false,
    help: 'While requests drain, answer new ones with 429, Retry-After and Connection: close instead of refusing the connection.',
  },
  loggingFormat: {
    name: 'logging-format',
    topic: 'Logging',
    kind: choice(['text', 'json']),
    default: 'text',
    help: 'Form of the log on standard error.',
  },
  verbosity: {
    name: 'v',
    short: 'v',
    topic: 'Logging',
    kind: integer({ min: 0, max: 10, noun: 'level' }),
    default: 0,
    help: 'How much to log: 0 is what an operator must know, 3 adds a line for each request, up to 10.',
  },
}
