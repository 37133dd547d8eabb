/** Builds the audit log from the options. */
import process from 'node:process'
import type { Registry } from '@prometheus-io/client'
import { openAuditPolicy } from '../../gate/audit/audit-policy.ts'
import { Auditor } from '../../gate/audit/auditor.ts'
import { RotatingFile } from '../../lib/files/rotating-file.ts'
import { LineQueue, type LineQueueEvent, type LineTarget } from '../../lib/log/line-queue.ts'
import { type Log, microsecondTime } from '../../lib/log/log.ts'
import { PipeTarget } from '../../lib/log/pipe-target.ts'
import type { AuditOptions } from '../../options/audit-flags.ts'
import { withFlagName } from '../../options/flag-errors.ts'
import { registerAuditMetrics } from '../metrics/audit.ts'
import type { FilePollStatus } from '../metrics/files.ts'

const STANDARD_OUTPUT = '-'
const MEGABYTE = 1024 * 1024
const DAY_MS = 24 * 60 * 60 * 1000
/** About 20,000 lines: seconds of a busy server, an hour of a quiet one. */
const BUFFER_BYTES_MAX = 16 * MEGABYTE
const STALL_MS = 1000
const RETRY_MS = 1000
const CLOSE_MS_MAX = 2000
/** How often a summary line is written for requests that were only counted. */
const SUMMARY_MS = 10_000

export interface Audit {
  /** Undefined when the audit log is off. */
  readonly auditor: Auditor | undefined
  /** Writes the buffered lines, within a time limit. */
  close(): Promise<void>
}

/** Rejects when a file cannot be used; the error names the flag. */
export async function openAudit(
  options: AuditOptions,
  log: Log,
  registry: Registry,
  polls?: FilePollStatus,
): Promise<Audit> {
  const { auditPolicyFile, auditLogPath } = options
  if (auditPolicyFile === undefined || auditLogPath === undefined) {
    return { auditor: undefined, close: async () => {} }
  }
  const flag = '--audit-policy-file'
  const followed = await withFlagName(flag, openAuditPolicy(auditPolicyFile, log, polls?.(flag)))
  const queue = new LineQueue({
    target: await withFlagName('--audit-log-path', openTarget(auditLogPath, options, log)),
    bytesMax: BUFFER_BYTES_MAX,
    stallMs: STALL_MS,
    retryMs: RETRY_MS,
    onEvent: (event) => report(event, auditLogPath, log),
  })
  const atOnce = Promise.resolve()
  const auditor = new Auditor({
    policy: () => followed.policy(),
    write: (line) => {
      queue.add(line)
    },
    written: options.auditLogMode === 'blocking' ? () => queue.written() : () => atOnce,
    wallTime: microsecondTime(),
    unauthenticatedPerSecond: options.auditLogUnauthenticatedQps,
  })
  const summaries = setInterval(() => auditor.summarize(), SUMMARY_MS).unref()
  registerAuditMetrics(auditor, queue, registry)
  return {
    auditor,
    close: async () => {
      followed.stop()
      clearInterval(summaries)
      auditor.summarize()
      await queue.close(CLOSE_MS_MAX)
    },
  }
}

async function openTarget(path: string, options: AuditOptions, log: Log): Promise<LineTarget> {
  if (path === STANDARD_OUTPUT) return new PipeTarget(process.stdout)
  return RotatingFile.open({
    path,
    bytesMax: options.auditLogMaxMegabytes * MEGABYTE,
    backupsMax: options.auditLogMaxBackups,
    backupAgeMsMax: options.auditLogMaxAgeDays * DAY_MS,
    compress: options.auditLogCompress,
    onRotationFailed: (err) => {
      log.warn('Old audit log files not compressed or removed', { err, file: path })
    },
  })
}

function report(event: LineQueueEvent, path: string, log: Log): void {
  switch (event.kind) {
    case 'stalled':
      log.warn('Audit log is slow, responses no longer wait for it', { file: path })
      return
    case 'failed':
      log.error('Audit log cannot be written', { err: event.error, file: path })
      return
    case 'recovered':
      log.info('Audit log is written again', { file: path, lost: event.lost })
      return
  }
}
