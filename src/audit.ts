/** The audit log, put together from the options. */
import process from 'node:process'
import type { Registry } from '@prometheus-io/client'
import { about } from './about.ts'
import { watchAudit } from './audit-metrics.ts'
import type { FileLooks } from './file-metrics.ts'
import { openAuditPolicy } from './gate/audit/audit-policy-file.ts'
import { Auditor } from './gate/audit/auditor.ts'
import { LineQueue, type LineQueueEvent, type LineTarget } from './lib/line-queue.ts'
import { type Log, microsecondTime } from './lib/log.ts'
import { PipeTarget } from './lib/pipe-target.ts'
import { RotatingFile } from './lib/rotating-file.ts'
import type { AuditOptions } from './options/audit-flags.ts'

const STANDARD_OUTPUT = '-'
const MEGABYTE = 1024 * 1024
const DAY_MS = 24 * 60 * 60 * 1000
/** Some twenty thousand lines: seconds of a busy server, an hour of a quiet one. */
const BUFFER_BYTES_MAX = 16 * MEGABYTE
const STALL_MS = 1000
const RETRY_MS = 1000
const CLOSE_MS_MAX = 2000
/** How often requests that are only counted are summed up. */
const SUMMARY_MS = 10_000

export interface Audit {
  /** Undefined when nothing is kept. */
  readonly auditor: Auditor | undefined
  /** Writes what there is, for a bounded time. */
  close(): Promise<void>
}

/** Rejects, naming the flag, when a file cannot be used. */
export async function openAudit(
  options: AuditOptions,
  log: Log,
  registry: Registry,
  looks?: FileLooks,
): Promise<Audit> {
  const { auditPolicyFile, auditLogPath } = options
  if (auditPolicyFile === undefined || auditLogPath === undefined) {
    return { auditor: undefined, close: async () => {} }
  }
  const flag = '--audit-policy-file'
  const followed = await about(flag, openAuditPolicy(auditPolicyFile, log, looks?.(flag)))
  const queue = new LineQueue({
    target: await about('--audit-log-path', openTarget(auditLogPath, options, log)),
    bytesMax: BUFFER_BYTES_MAX,
    stallMs: STALL_MS,
    retryMs: RETRY_MS,
    onEvent: (event) => report(event, auditLogPath, log),
  })
  const out = Promise.resolve()
  const auditor = new Auditor({
    policy: () => followed.policy(),
    write: (line) => {
      queue.add(line)
    },
    written: options.auditLogMode === 'blocking' ? () => queue.written() : () => out,
    wallTime: microsecondTime(),
    strangersPerSecond: options.auditLogUnauthenticatedQps,
  })
  const summaries = setInterval(() => auditor.summarize(), SUMMARY_MS).unref()
  watchAudit(auditor, queue, registry)
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
    onRotationFailed: (err) => log.warn('Old audit files not put in order', { err, file: path }),
  })
}

function report(event: LineQueueEvent, path: string, log: Log): void {
  switch (event.kind) {
    case 'stalled':
      log.warn('Audit log is slow, answers no longer wait for it', { file: path })
      return
    case 'failed':
      log.error('Audit log cannot be written', { err: event.error, file: path })
      return
    case 'recovered':
      log.info('Audit log is written again', { file: path, lost: event.lost })
      return
  }
}
