import type { Handler, Request, Response } from '../http/exchange.ts'
import type { Clock } from '../lib/clock.ts'
import { goQuote } from '../lib/go/go-quote.ts'
import type { Log } from '../lib/log/log.ts'
import type { CheckOutcome, HealthCheck, Probe, ProbeReport } from './probe.ts'
import { runCheck } from './probe.ts'
import type { HealthTallies } from './tallies.ts'

/**
 * The last line when all checks pass. It names healthz on every endpoint, as in Kubernetes:
 * programs use the status code, and people know this text.
 */
const PASSED_LINE = 'healthz check passed\n'

/** Many probes that fail for the same reason are logged once in this time. */
const REPEAT_LOG_MS = 10_000

export interface HealthOptions {
  readonly probes: readonly Probe[]
  readonly tallies: HealthTallies
  readonly log: Log
  readonly clock: Clock
}

/**
 * Finds the handler for `/livez`, `/readyz`, `/healthz` and for `/<endpoint>/<check>`, where the
 * name of a check may itself contain slashes. The method is ignored: a probe with any method reads
 * the health.
 */
export function healthPaths(options: HealthOptions): (path: string) => Handler | undefined {
  const probes = new Map(options.probes.map((probe) => [probe.name, probe]))
  const aggregates = new Map(options.probes.map((probe) => [probe, aggregate(probe, options)]))
  return (path) => {
    const slash = path.indexOf('/', 1)
    const probe = probes.get(slash === -1 ? path.slice(1) : path.slice(1, slash))
    if (probe === undefined) return undefined
    if (slash === -1) return aggregates.get(probe)
    const check = probe.find(path.slice(slash + 1))
    return check === undefined ? undefined : single(check)
  }
}

function aggregate(probe: Probe, { tallies, log, clock }: HealthOptions): Handler {
  const logFailures = failureLog(probe.name, log, clock)
  return async (request: Request) => {
    const excluded = request.query.getAll('exclude')
    const report = await probe.run(excluded, request.signal)
    tallies.record(probe.name, report.outcomes)
    // A request that excludes checks does not show the state of all of them.
    if (excluded.length === 0) logFailures(report)
    const isVerbose = request.query.has('verbose')
    if (report.isHealthy) return text(200, isVerbose ? describe(report) + PASSED_LINE : 'ok')
    return text(500, `${describe(report)}${probe.name} check failed\n`)
  }
}

/** A single check: the only response that contains the reason of a failure. */
function single(check: HealthCheck): Handler {
  return async (request: Request) => {
    const outcome = await runCheck(check, request.signal)
    if (outcome.result === 'failed') {
      return text(500, `internal server error: ${reasonText(outcome.reason)}\n`)
    }
    return { status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: 'ok' }
  }
}

function describe(report: ProbeReport): string {
  const lines = report.outcomes.map(line)
  if (report.unmatched.length > 0) {
    const names = report.unmatched.toSorted().map(goQuote).join(',')
    lines.push(`warn: some health checks cannot be excluded: no matches for ${names}\n`)
  }
  return lines.join('')
}

function line(outcome: CheckOutcome): string {
  switch (outcome.result) {
    case 'ok':
      return `[+]${outcome.name} ok\n`
    case 'excluded':
      return `[+]${outcome.name} excluded: ok\n`
    case 'failed':
      return `[-]${outcome.name} failed: reason withheld\n`
  }
}

/**
 * Logs the reasons when the set of failing checks changes, and repeats them at intervals while it
 * lasts. Only the names are compared, because a reason may contain a duration and change each time.
 */
function failureLog(endpoint: string, log: Log, clock: Clock): (report: ProbeReport) => void {
  let logged = ''
  let loggedAt = 0
  return (report) => {
    const failed = report.outcomes.filter((outcome) => outcome.result === 'failed')
    const names = failed.map(({ name }) => name).join(' ')
    const isOld = clock.now() - loggedAt >= REPEAT_LOG_MS
    if (names === logged && (names === '' || !isOld)) return
    logged = names
    loggedAt = clock.now()
    if (names === '') log.info('Health checks pass again', { endpoint })
    else {
      const reasons = failed.map(({ name, reason }) => `${name}: ${reasonText(reason)}`)
      log.warn('Health check failed', { endpoint, failed: reasons.join('; ') })
    }
  }
}

function reasonText(reason: unknown): string {
  return reason instanceof Error ? reason.message : String(reason)
}

function text(status: number, body: string): Response {
  return {
    status,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      'x-content-type-options': 'nosniff',
    },
    body,
  }
}
