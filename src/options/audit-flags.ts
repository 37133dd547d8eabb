import type { FlagTable, Rule } from './flag.ts'
import { boolean, choice, integer, optionalPath } from './kinds.ts'

/** What is kept of requests, and where. */
export interface AuditOptions {
  readonly auditPolicyFile: string | undefined
  /** `-` is standard output. */
  readonly auditLogPath: string | undefined
  readonly auditLogFormat: 'json'
  readonly auditLogMode: AuditLogMode
  /** Never 0: the flag's 0 has become the default number by now. */
  readonly auditLogMaxMegabytes: number
  /** 0 means that age does not matter. */
  readonly auditLogMaxAgeDays: number
  /** 0 means that any number is kept. */
  readonly auditLogMaxBackups: number
  readonly auditLogCompress: boolean
  /** 0 means that all of them are kept. */
  readonly auditLogUnauthenticatedQps: number
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
    help: 'YAML file with a Policy of audit.k8s.io/v1: which requests are kept, and how much of them. Looked at once a second. Needs --audit-log-path.',
  },
  auditLogPath: {
    name: 'audit-log-path',
    topic: 'Audit',
    kind: optionalPath,
    default: undefined,
    help: 'File that what is kept is written to, one JSON line for each stage of a request; - is standard output. Needs --audit-policy-file.',
  },
  auditLogFormat: {
    name: 'audit-log-format',
    topic: 'Audit',
    kind: choice(['json'], { legacy: 'it leaves out most of what happened' }),
    default: 'json',
    help: 'Form of the lines.',
  },
  auditLogMode: {
    name: 'audit-log-mode',
    topic: 'Audit',
    kind: choice(['blocking', 'batch'], {
      'blocking-strict': 'a full disk would end all service',
    }),
    default: 'blocking',
    help: 'With blocking, an answer waits until its lines are written, unless writing fails or takes longer than a second; with batch, no answer waits.',
  },
  auditLogMaxMegabytes: {
    name: 'audit-log-maxsize',
    topic: 'Audit',
    kind: integer({ min: 0, max: MEGABYTES_MAX, zeroMeans: MEGABYTES_DEFAULT }),
    default: MEGABYTES_DEFAULT,
    help: `Megabytes after which the file is renamed and a new one begun. 0 means ${MEGABYTES_DEFAULT}.`,
  },
  auditLogMaxAgeDays: {
    name: 'audit-log-maxage',
    topic: 'Audit',
    kind: integer({ min: 0, max: DAYS_MAX }),
    default: 366,
    help: 'Days after which a renamed file is removed, by the time in its name. 0 keeps it.',
  },
  auditLogMaxBackups: {
    name: 'audit-log-maxbackup',
    topic: 'Audit',
    kind: integer({ min: 0, max: BACKUPS_MAX }),
    default: 100,
    help: 'How many renamed files are kept. 0 keeps them all.',
  },
  auditLogCompress: {
    name: 'audit-log-compress',
    topic: 'Audit',
    kind: boolean,
    default: false,
    help: 'Compress renamed files with gzip.',
  },
  auditLogUnauthenticatedQps: {
    name: 'audit-log-unauthenticated-qps',
    topic: 'Audit',
    kind: integer({ min: 0, max: QPS_MAX }),
    default: 2,
    help: 'How many requests a second of callers without valid credentials are kept in full, fifty times as many at once; the rest is counted, and summed up every ten seconds. 0 keeps them all.',
  },
}

/** One without the other would look as if something were kept. */
export const auditRule: Rule<AuditOptions> = {
  about: ['auditPolicyFile', 'auditLogPath'],
  check: ({ auditPolicyFile, auditLogPath }) => {
    if ((auditPolicyFile === undefined) === (auditLogPath === undefined)) return undefined
    return auditLogPath === undefined
      ? '--audit-policy-file needs --audit-log-path: add --audit-log-path=<path>, or - for standard output'
      : '--audit-log-path needs --audit-policy-file: without a policy nothing is kept'
  },
}
