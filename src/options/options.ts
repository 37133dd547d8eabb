import { type AuditOptions, auditFlags } from './audit-flags.ts'
import { type AuthenticationOptions, authenticationFlags } from './authentication-flags.ts'
import { type AuthorizationOptions, authorizationFlags } from './authorization-flags.ts'
import { type ClusterOptions, clusterFlags } from './cluster-flags.ts'
import type { FlagTable } from './flag.ts'
import { type HistoryOptions, historyFlags } from './history-flags.ts'
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

/** The validated and frozen values of all flags. Times are in milliseconds. */
export interface Options
  extends AuthenticationOptions,
    AuditOptions,
    AuthorizationOptions,
    LimitOptions,
    HistoryOptions,
    ClusterOptions {
  readonly bindAddress: string
  /** 0 means any free port. */
  readonly securePort: number
  /** 0 means no insecure port. */
  readonly insecurePort: number
  readonly certDir: string
  readonly tlsCertFile: string | undefined
  readonly tlsPrivateKeyFile: string | undefined
  readonly tlsMinVersion: TlsVersion
  /** Never 0: parsing replaces 0 by the default. */
  readonly http2MaxStreamsPerConnection: number
  readonly requestTimeoutMs: number

  /** Whether the web page is served. */
  readonly ui: boolean
  /** Addresses and CIDR ranges. */
  readonly proxyProtocolFrom: readonly string[]

  readonly trustLoopback: boolean

  /** Not empty; all http or all https, without trailing slashes. */
  readonly etcdServers: readonly string[]
  readonly etcdCaFile: string | undefined
  readonly etcdCertFile: string | undefined
  readonly etcdKeyFile: string | undefined
  /** Starts with a slash and does not end with one. */
  readonly etcdPrefix: string
  readonly etcdHealthcheckTimeoutMs: number
  /** 0 reads it from etcd's metrics. */
  readonly etcdQuotaBytes: number
  readonly groupCommit: boolean
  /** 0 disables compaction. */
  readonly etcdCompactionIntervalMs: number
  /** Counted from the last change of an event. */
  readonly eventTtlMs: number | 'never'
  readonly retentionPolicyFile: string | undefined

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

/** With more, one connection could use memory for streams that no limit has counted yet. */
const http2StreamsMax = 1000
const http2StreamsDefault = 100

/** One row per flag. To add a flag, add a field in Options and a row here. */
export const serverFlags: FlagTable<Options> = {
  bindAddress: {
    name: 'bind-address',
    topic: 'Serving',
    kind: ipAddress,
    default: '0.0.0.0',
    help: 'IP address on which --secure-port listens. 0.0.0.0 means all IPv4 addresses, :: all IPv4 and IPv6 addresses.',
  },
  securePort: {
    name: 'secure-port',
    topic: 'Serving',
    kind: port,
    default: 6443,
    help: 'Port for HTTPS (HTTP/2 and HTTP/1.1). 0 means any free port, which is logged.',
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
    help: 'Directory for the self-signed certificate that is generated when --tls-cert-file and --tls-private-key-file are not set.',
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
    help: 'Minimum TLS version of clients.',
  },
  http2MaxStreamsPerConnection: {
    name: 'http2-max-streams-per-connection',
    topic: 'Serving',
    kind: integer({ min: 0, max: http2StreamsMax, zeroMeans: http2StreamsDefault }),
    default: http2StreamsDefault,
    help: `Maximum number of concurrent requests and watches on one HTTP/2 connection, at most ${http2StreamsMax}. 0 means ${http2StreamsDefault}.`,
  },
  requestTimeoutMs: {
    name: 'request-timeout',
    topic: 'Serving',
    kind: duration({ positive: true }),
    default: 60_000,
    help: 'Maximum duration of a request, after which it fails with a timeout. It does not apply to watches.',
  },
  proxyProtocolFrom: {
    name: 'proxy-protocol-from',
    topic: 'Serving',
    kind: list('cidrs', addressRange),
    default: [],
    help: 'Addresses or CIDR ranges of proxies whose connections to --secure-port start with a PROXY protocol header, version 1 or 2, that names the client for the log, the audit log and limits. A connection from them without a header is closed, and so is a connection from any other address with a header.',
  },
  ui: {
    name: 'ui',
    topic: 'Serving',
    kind: boolean,
    default: true,
    help: 'Serve the web page at /ui/. It is public and holds no data: it reads events from the API, with the credentials and the permissions of its user.',
  },
  ...limitFlags,
  trustLoopback: {
    name: 'trust-loopback',
    topic: 'Access',
    kind: boolean,
    default: true,
    help: 'Let processes on this host read health, version and metrics without credentials. Turn it off when a proxy on this host forwards connections of remote clients without PROXY protocol headers: all of them would appear to come from this host.',
  },
  ...authorizationFlags,
  ...auditFlags,
  ...authenticationFlags,
  etcdServers: {
    name: 'etcd-servers',
    topic: 'Storage',
    kind: list('urls', etcdEndpoint),
    default: [],
    help: 'Comma-separated members of the etcd cluster, all http or all https, such as https://etcd-0:2379. May be repeated. Required.',
  },
  etcdCaFile: {
    name: 'etcd-cafile',
    topic: 'Storage',
    kind: optionalPath,
    default: undefined,
    help: "PEM file with the certificate authorities that verify etcd's certificate. Checked for changes once a second. Default: the public authorities that Node trusts.",
  },
  etcdCertFile: {
    name: 'etcd-certfile',
    topic: 'Storage',
    kind: optionalPath,
    default: undefined,
    help: 'PEM file with the client certificate for etcd. Checked for changes once a second. Needs --etcd-keyfile.',
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
    help: 'Prefix of all keys in etcd. No other program may use it: tidings does not start when it finds values under it that it did not write. Must start with a slash and not end with one.',
  },
  etcdQuotaBytes: {
    name: 'etcd-quota-bytes',
    topic: 'Storage',
    kind: integer({ min: 0, max: 2 ** 45 }),
    default: 0,
    help: 'The --quota-backend-bytes of etcd: --max-write-bytes-per-second is reduced while more than half of it is in use. 0 reads it from etcd; from etcd 3.5, that is from the metrics on the port of its clients.',
  },
  etcdHealthcheckTimeoutMs: {
    name: 'etcd-healthcheck-timeout',
    topic: 'Storage',
    kind: duration({ positive: true }),
    default: 2000,
    help: 'How long etcd may take to respond to a health check before the check fails.',
  },
  etcdCompactionIntervalMs: {
    name: 'etcd-compaction-interval',
    topic: 'Storage',
    kind: duration({ positive: false }),
    default: 300_000,
    help: 'How often one of the replicas compacts etcd. The history of the last interval is retained. Compaction affects the whole etcd, not only --etcd-prefix. At least 1m; 0 turns it off, and another program must then compact etcd.',
  },
  eventTtlMs: {
    name: 'event-ttl',
    topic: 'Storage',
    kind: lifetime,
    default: 3_600_000,
    help: 'How long an event is retained after its last change, unless --retention-policy-file has a rule for it. With never, events do not expire and etcd fills up. At least 1s.',
  },
  retentionPolicyFile: {
    name: 'retention-policy-file',
    topic: 'Storage',
    kind: optionalPath,
    default: undefined,
    help: 'File with rules for how long events are retained, by cluster, namespace, type, reason, kind and controller, with budgets for namespaces and clusters, and with what history keeps for how long; --event-ttl applies to events that no rule matches. The server checks it for changes once a second and applies them to stored events. Give all replicas the same file.',
  },
  groupCommit: {
    name: 'group-commit',
    topic: 'Storage',
    kind: boolean,
    default: true,
    help: 'Batch concurrent writes into one etcd transaction. Turn it off only for comparison.',
  },
  ...historyFlags,
  eventsGroup: {
    name: 'events-group',
    topic: 'API',
    kind: text('name', eventsGroupMistake),
    default: 'events.k8s.io',
    help: 'API group under which events are served.',
  },
  ...clusterFlags,
  livezGracePeriodMs: {
    name: 'livez-grace-period',
    topic: 'Health and shutdown',
    kind: duration({ positive: false }),
    default: 0,
    help: 'How long after its start the server may still be starting up before /livez fails.',
  },
  shutdownDelayMs: {
    name: 'shutdown-delay-duration',
    topic: 'Health and shutdown',
    kind: duration({ positive: false }),
    default: 0,
    help: 'How long the server continues to serve after a signal to stop, with /readyz failing, so that load balancers can first remove it.',
  },
  shutdownSendRetryAfter: {
    name: 'shutdown-send-retry-after',
    topic: 'Health and shutdown',
    kind: boolean,
    default: false,
    help: 'While requests drain, respond to new requests with 429, Retry-After and Connection: close instead of refusing the connection.',
  },
  loggingFormat: {
    name: 'logging-format',
    topic: 'Logging',
    kind: choice(['text', 'json']),
    default: 'text',
    help: 'Format of the log on standard error.',
  },
  verbosity: {
    name: 'v',
    short: 'v',
    topic: 'Logging',
    kind: integer({ min: 0, max: 10, noun: 'level' }),
    default: 0,
    help: 'Log verbosity, from 0 to 10: 0 logs what an operator must know, 3 adds a line for each request.',
  },
}
