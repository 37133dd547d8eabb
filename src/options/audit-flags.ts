import type { FlagTable, Rule } from './flag.ts'
import { boolean, choice, integer, optionalPath } from './kinds.ts'

/** The audit log and traces. */
export interface AuditOptions {
  readonly auditPolicyFile: string | undefined
  /** `-` is standard output. */
  readonly auditLogPath: string | undefined
  readonly auditLogFormat: 'json'
  readonly auditLogMode: AuditLogMode
  /** Never 0: parsing replaces 0 by the default. */
  readonly auditLogMaxMegabytes: number
  /** 0 means no limit. */
  readonly auditLogMaxAgeDays: number
  /** 0 means no limit. */
  readonly auditLogMaxBackups: number
  readonly auditLogCompress: boolean
  /** 0 means no limit. */
  readonly auditLogUnauthenticatedQps: number
  readonly tracingConfigFile: string | undefined
}

export type AuditLogMode = 'blocking' | 'batch'

const MEGABYTES_DEFAULT = 100
const MEGABYTES_MAX = 100_000
const DAYS_MAX = 36_500
const BACKUPS_MAX = 100_000
const QPS_MAX = 100_000

export const auditFlags: FlagTable<AuditOptions> = {
  auditPolicyFile: {
    name: 'audit-policy-file',
    topic: 'Audit',
    kind: optionalPath,
    default: undefined,
    help: 'YAML file with a Policy of audit.k8s.io/v1: which requests are audited, and at which level. Checked for changes once a second. Needs --audit-log-path.',
  },
  auditLogPath: {
    name: 'audit-log-path',
    topic: 'Audit',
    kind: optionalPath,
    default: undefined,
    help: 'File of the audit log, with one JSON line for each stage of a request; - is standard output. Needs --audit-policy-file.',
  },
  auditLogFormat: {
    name: 'audit-log-format',
    topic: 'Audit',
    kind: choice(['json'], { legacy: 'it omits most of an audit event' }),
    default: 'json',
    help: 'Format of the audit log.',
  },
  auditLogMode: {
    name: 'audit-log-mode',
    topic: 'Audit',
    kind: choice(['blocking', 'batch'], {
      'blocking-strict': 'a full disk would stop all requests',
    }),
    default: 'blocking',
    help: 'With blocking, a response waits until its lines are written, unless the write fails or takes longer than a second. With batch, responses do not wait.',
  },
  auditLogMaxMegabytes: {
    name: 'audit-log-maxsize',
    topic: 'Audit',
    kind: integer({ min: 0, max: MEGABYTES_MAX, zeroMeans: MEGABYTES_DEFAULT }),
    default: MEGABYTES_DEFAULT,
    help: `Size in megabytes at which the file is rotated. 0 means ${MEGABYTES_DEFAULT}.`,
  },
  auditLogMaxAgeDays: {
    name: 'audit-log-maxage',
    topic: 'Audit',
    kind: integer({ min: 0, max: DAYS_MAX }),
    default: 366,
    help: 'Days after which a rotated file is removed, by the time in its name. 0 keeps all files.',
  },
  auditLogMaxBackups: {
    name: 'audit-log-maxbackup',
    topic: 'Audit',
    kind: integer({ min: 0, max: BACKUPS_MAX }),
    default: 100,
    help: 'Maximum number of rotated files. 0 keeps all files.',
  },
  auditLogCompress: {
    name: 'audit-log-compress',
    topic: 'Audit',
    kind: boolean,
    default: false,
    help: 'Compress rotated files with gzip.',
  },
  auditLogUnauthenticatedQps: {
    name: 'audit-log-unauthenticated-qps',
    topic: 'Audit',
    kind: integer({ min: 0, max: QPS_MAX }),
    default: 2,
    help: 'Requests per second without valid credentials that are audited in full, with bursts of fifty times as many. The rest is counted and summarised every ten seconds. 0 means no limit.',
  },
  tracingConfigFile: {
    name: 'tracing-config-file',
    topic: 'Traces',
    kind: optionalPath,
    default: undefined,
    help: 'YAML file with a TracingConfiguration of apiserver.config.k8s.io/v1: where spans are sent, and for how many requests. Read once, at start. Without it, requests are not traced.',
  },
}

/** With only one of the two flags, an operator would expect an audit log in vain. */
export const auditRule: Rule<AuditOptions> = {
  about: ['auditPolicyFile', 'auditLogPath'],
  check: ({ auditPolicyFile, auditLogPath }) => {
    if ((auditPolicyFile === undefined) === (auditLogPath === undefined)) return undefined
    return auditLogPath === undefined
      ? '--audit-policy-file needs --audit-log-path: add --audit-log-path=<path>, or - for standard output'
      : '--audit-log-path needs --audit-policy-file: without a policy nothing is audited'
  },
}
