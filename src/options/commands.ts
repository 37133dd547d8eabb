import { auditRule } from './audit-flags.ts'
import { authenticationRules } from './authentication-flags.ts'
import { authorizationRules } from './authorization-flags.ts'
import { etcdRules } from './etcd-rules.ts'
import { type Command, type FlagTable, type Rule, together } from './flag.ts'
import { history } from './history-commands.ts'
import { historyRules } from './history-flags.ts'
import { boolean, optionalPath, optionalText } from './kinds.ts'
import { type Options, serverFlags } from './options.ts'

const compactionIntervalMsMin = 60_000
/** Below the ports that kernels assign, and none of those that API servers of clusters use. */
export const DEV_PORT = 26_443

const rules: readonly Rule<Options>[] = [
  ...etcdRules(', or use "tidings dev"'),
  {
    about: ['etcdCompactionIntervalMs'],
    check: ({ etcdCompactionIntervalMs }) =>
      etcdCompactionIntervalMs === 0 || etcdCompactionIntervalMs >= compactionIntervalMsMin
        ? undefined
        : '--etcd-compaction-interval is shorter than 1m: a starting replica could not read all events before their history is compacted. Write 1m or more, or 0 to turn it off',
  },
  ...authenticationRules,
  ...authorizationRules,
  auditRule,
  ...historyRules,
  together(serverFlags, 'tlsCertFile', 'tlsPrivateKeyFile'),
  {
    about: ['securePort', 'insecurePort'],
    check: ({ securePort, insecurePort }) =>
      insecurePort === 0 || insecurePort !== securePort
        ? undefined
        : `--secure-port and --insecure-port are both ${securePort}: give them different ports`,
  },
]

const dev = {
  name: 'tidings dev',
  usage: '[--mirror] [--data-dir path] [flags]',
  summary:
    'Starts a private etcd (--etcd-binary) and a server in front of it, for one user. --mirror copies the events of the cluster that kubectl uses, or of another one (--context, --kubeconfig). --data-dir keeps events, token and port for the next start.',
}

/** The server itself: `tidings [flags]`. */
export const serverCommand: Command<Options> = {
  name: 'tidings',
  subcommands: [dev, history],
  summary:
    'An events API server: serves Kubernetes events and health probes from any number of replicas in front of etcd.',
  flags: serverFlags,
  rules,
  decided: {},
}

export interface DevOptions extends Options {
  /** Path of the etcd program. Default: searched in PATH. */
  readonly etcdBinary: string | undefined
  /** Default: a temporary folder. */
  readonly dataDir: string | undefined
  /** Whether to mirror the cluster of the user's own kubeconfig. */
  readonly mirror: boolean
  /** Default: the current context. */
  readonly context: string | undefined
  /** Default: the files that kubectl would use. */
  readonly kubeconfig: string | undefined
}

const devFlags: FlagTable<DevOptions> = {
  ...serverFlags,
  // Not reachable from other hosts, and no conflict with a server that already runs.
  bindAddress: { ...serverFlags.bindAddress, default: '127.0.0.1' },
  securePort: {
    ...serverFlags.securePort,
    default: 0,
    help: `Port for HTTPS (HTTP/2 and HTTP/1.1). 0 means the port of the last start with the same --data-dir, otherwise ${DEV_PORT}; if that is in use, any free port, which is printed.`,
  },
  etcdBinary: {
    name: 'etcd-binary',
    topic: 'Dev',
    kind: optionalPath,
    default: undefined,
    help: 'The etcd program to start. Default: etcd in PATH.',
  },
  dataDir: {
    name: 'data-dir',
    topic: 'Dev',
    kind: optionalPath,
    default: undefined,
    help: 'Folder that keeps events, token and port for the next start. Without it, they are deleted when tidings stops.',
  },
  mirror: {
    name: 'mirror',
    topic: 'Dev',
    kind: boolean,
    default: false,
    help: 'Mirror the cluster of your own kubeconfig. Runs credential programs (exec), which the server otherwise never does.',
  },
  context: {
    name: 'context',
    topic: 'Dev',
    kind: optionalText('name'),
    default: undefined,
    help: 'Context of your kubeconfig that --mirror uses. Default: the current one.',
  },
  kubeconfig: {
    name: 'kubeconfig',
    topic: 'Dev',
    kind: optionalPath,
    default: undefined,
    help: 'Kubeconfig that --mirror reads. Default: the files in KUBECONFIG, or ~/.kube/config.',
  },
}

const ownEtcd = 'tidings dev starts its own etcd: leave the flag out'

const ownClustersFile: Rule<DevOptions> = {
  about: ['mirror', 'clustersFile'],
  check: ({ mirror, clustersFile }) =>
    mirror && clustersFile !== undefined
      ? '--mirror and --clusters-file cannot be combined: --mirror writes its own clusters file'
      : undefined,
}

/** A server with a private etcd, for development: `tidings dev [flags]`. */
export const devCommand: Command<DevOptions> = {
  ...dev,
  flags: devFlags,
  rules: [...rules, needsMirror('context'), needsMirror('kubeconfig'), ownClustersFile],
  decided: {
    etcdServers: ownEtcd,
    etcdCaFile: ownEtcd,
    etcdCertFile: ownEtcd,
    etcdKeyFile: ownEtcd,
    certDir: 'tidings dev stores its certificate in a temporary folder: leave the flag out',
    tokenAuthFile: 'tidings dev generates its own token and prints it: leave the flag out',
  },
}

function needsMirror(option: 'context' | 'kubeconfig'): Rule<DevOptions> {
  return {
    about: [option, 'mirror'],
    check: (options) =>
      options[option] === undefined || options.mirror
        ? undefined
        : `--${option} has no effect without --mirror: add --mirror`,
  }
}
