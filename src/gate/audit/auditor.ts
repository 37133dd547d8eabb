import type { StatusError } from '../../api/status.ts'
import type { Request } from '../../http/exchange.ts'
import type { Attributes } from '../attributes.ts'
import type { Trail } from '../gate.ts'
import { ANONYMOUS, auditedUser, type User } from '../user.ts'
import { type AuditedResponse, AuditLines, MicroTimes } from './audit-event.ts'
import {
  AUDIT_STAGES,
  type AuditLevel,
  type AuditPolicy,
  type AuditRuling,
  type AuditStage,
} from './audit-policy.ts'
import { UnauthenticatedSampler } from './unauthenticated-sampling.ts'

const DECISION = 'authorization.k8s.io/decision'
const REASON = 'authorization.k8s.io/reason'
const CLUSTER = 'tidings.dev/cluster'
const TRUNCATED = 'audit.k8s.io/truncated'

export interface AuditorOptions {
  /** Returns the current policy. */
  policy(): AuditPolicy
  /** Takes a line with its newline. */
  write(line: string): void
  /** Resolves when a response need not wait any longer for its lines to be written. */
  written(): Promise<void>
  /** Milliseconds since 1970, with fractions. */
  wallTime(): number
  /** Requests per second without valid credentials that are logged in full; 0 logs all of them. */
  readonly unauthenticatedPerSecond?: number | undefined
  /** Monotonic milliseconds. */
  now?(): number
}

/** Writes the audit log that the policy asks for. */
export class Auditor {
  readonly sampler: UnauthenticatedSampler
  readonly #options: AuditorOptions
  readonly #times = new MicroTimes()
  readonly #levels: Record<AuditLevel, number> = {
    None: 0,
    Metadata: 0,
    Request: 0,
    RequestResponse: 0,
  }
  /** Used for responses that are generated elsewhere and must have the same id. */
  readonly #ids = new WeakMap<Request, string>()
  #eventCount = 0

  constructor(options: AuditorOptions) {
    this.#options = options
    this.sampler = new UnauthenticatedSampler({
      perSecond: options.unauthenticatedPerSecond ?? 0,
      now: () => options.now?.() ?? performance.now(),
    })
  }

  /** Number of requests by level. */
  get levels(): Readonly<Record<AuditLevel, number>> {
    return this.#levels
  }

  /** Number of lines written. */
  get eventCount(): number {
    return this.#eventCount
  }

  /** Number of requests that were only counted. */
  get omittedCount(): number {
    return this.sampler.omittedCount
  }

  /** Writes summaries of the requests that were only counted since the last call. */
  summarize(): void {
    for (const line of this.sampler.summaries()) this.write(line)
  }

  begin(request: Request, attributes: Attributes, auditId: string): AuditTrail {
    this.#ids.set(request, auditId)
    return new AuditTrail({ request, attributes, auditId }, this)
  }

  idOf(request: Request): string | undefined {
    return this.#ids.get(request)
  }

  rule(user: User | undefined, attributes: Attributes): AuditRuling {
    const ruling = this.#options.policy().rule(user, attributes)
    this.#levels[ruling.level] += 1
    return ruling
  }

  write(line: string): void {
    this.#eventCount += 1
    this.#options.write(line)
  }

  written(): Promise<void> {
    return this.#options.written()
  }

  wallTime(): number {
    return this.#options.wallTime()
  }

  /** Formats a time for the log. */
  timeText(ms: number): string {
    return this.#times.text(ms)
  }
}

interface AuditedRequest {
  readonly request: Request
  readonly attributes: Attributes
  readonly auditId: string
}

/** The bodies of a request, each as JSON on a single line. */
export interface AuditedBodies {
  readonly request?: string | undefined
  readonly response?: string | undefined
  /** Whether one of them was too long and is left out. */
  readonly isTruncated: boolean
}

export interface AuditedEnd {
  readonly code: number
  readonly error?: StatusError | undefined
  /** Whether it ended with an unexpected error, which is a bug. */
  readonly isPanic?: boolean
  readonly createdName?: string | undefined
  readonly bodies?: AuditedBodies | undefined
}

/** Writes the audit lines of one request, from its arrival on. */
export class AuditTrail implements Trail {
  readonly #audited: AuditedRequest
  readonly #auditor: Auditor
  readonly #receivedAt: number
  /** The annotations of the first line, from the path alone. */
  readonly #placed: Readonly<Record<string, string>>
  readonly #annotations: Record<string, string>
  #user: User | undefined
  #ruling: AuditRuling | undefined
  /** Whether lines are written. Decided after authorization for an unauthenticated client. */
  #isAdmitted: boolean | undefined
  #lines: AuditLines | undefined
  #impersonated: User | undefined
  #isOver = false

  constructor(audited: AuditedRequest, auditor: Auditor) {
    this.#audited = audited
    this.#auditor = auditor
    const { cluster, isPrefixed } = audited.attributes
    this.#placed = isPrefixed === true ? { [CLUSTER]: cluster } : {}
    this.#annotations = { ...this.#placed }
    this.#receivedAt = auditor.wallTime()
  }

  identified(user: User): void {
    this.#user = auditedUser(user)
    this.#rule()
    // Formatted now, since the request drops its headers and query before the first line is
    // written.
    if (AUDIT_STAGES.some((stage) => this.#wants(stage))) this.#lines = this.#makeLines()
    if (!this.#isUnauthenticated) this.#receive(true)
  }

  impersonated(user: User): void {
    this.#impersonated = auditedUser(user)
  }

  decided(decision: 'allow' | 'forbid' | undefined, reason: string): void {
    if (decision !== undefined) this.#annotations[DECISION] = decision
    this.#annotations[REASON] = reason
    if (this.#isAdmitted !== undefined) return
    // What an anonymous user does with objects is always logged, however often it happens.
    this.#receive(decision === 'allow' && this.#audited.attributes.isResource)
  }

  /** Whether the policy may want a line. True before the user is known. */
  get isRecorded(): boolean {
    return this.#ruling?.level !== 'None'
  }

  /** Bytes of client data retained for the log until the request ends. */
  get retainedBytes(): number {
    return this.#lines?.retainedBytes ?? 0
  }

  get logsRequestBody(): boolean {
    const level = this.#ruling?.level
    return level === 'Request' || level === 'RequestResponse'
  }

  get logsResponseBody(): boolean {
    return this.#ruling?.level === 'RequestResponse'
  }

  get logsManagedFields(): boolean {
    return this.#ruling?.omitManagedFields !== true
  }

  /** Called when a long-running response starts. */
  started(code: number): void {
    this.#write('ResponseStarted', { response: { code } })
  }

  /** Called when the request ends. Only the first call counts. */
  ended(end: AuditedEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#ruling === undefined) {
      this.#notIdentified(end)
      return
    }
    if (this.#isAdmitted === undefined) this.#receive(false)
    if (!this.#isAdmitted) {
      this.#omit('ResponseComplete', end.code)
      return
    }
    if (end.bodies?.isTruncated === true) this.#annotations[TRUNCATED] = 'true'
    this.#write(end.isPanic === true ? 'Panic' : 'ResponseComplete', {
      response: { code: end.code, error: end.error },
      createdName: end.createdName,
      requestObject: end.bodies?.request,
      responseObject: end.bodies?.response,
    })
  }

  /** Resolves when the response may be sent. */
  written(): Promise<void> {
    return this.#auditor.written()
  }

  /** A request that ended before authentication has no user and only this stage. */
  #notIdentified({ code, error }: AuditedEnd): void {
    this.#rule()
    const stage = 'ResponseStarted'
    if (!this.#admit(false)) {
      this.#omit(stage, code)
      return
    }
    const message = code === 401 ? authenticationFailure(this.#audited.request) : undefined
    const response = message === undefined ? { code, error } : { code, error, message }
    this.#write(stage, { response })
  }

  get #isUnauthenticated(): boolean {
    return this.#user === undefined || this.#user === ANONYMOUS
  }

  #rule(): void {
    this.#ruling = this.#auditor.rule(this.#user, this.#audited.attributes)
  }

  #receive(isAlwaysLogged: boolean): void {
    if (this.#admit(isAlwaysLogged)) this.#write('RequestReceived')
  }

  /** A request that the policy does not log takes nothing from the sampler's allowance. */
  #admit(isAlwaysLogged: boolean): boolean {
    const isWanted = this.#ruling?.level !== 'None'
    this.#isAdmitted = isAlwaysLogged || !isWanted || this.#auditor.sampler.admit()
    return this.#isAdmitted
  }

  #omit(stage: AuditStage, code: number): void {
    if (!this.#wants(stage)) return
    const at = this.#auditor.timeText(this.#receivedAt)
    this.#auditor.sampler.omit(code, this.#audited.request.peer.address, at)
  }

  #wants(stage: AuditStage): boolean {
    const ruling = this.#ruling
    return ruling !== undefined && ruling.level !== 'None' && !ruling.omitStages.has(stage)
  }

  #makeLines(): AuditLines {
    return new AuditLines({
      ...this.#audited,
      user: this.#user,
      isUnauthenticated: this.#isUnauthenticated,
      level: this.#ruling?.level ?? 'None',
      receivedAt: this.#auditor.timeText(this.#receivedAt),
    })
  }

  #write(
    stage: AuditStage,
    more: {
      readonly response?: AuditedResponse
      readonly createdName?: string | undefined
      readonly requestObject?: string | undefined
      readonly responseObject?: string | undefined
    } = {},
  ): void {
    if (this.#isAdmitted !== true || !this.#wants(stage)) return
    this.#lines ??= this.#makeLines()
    this.#auditor.write(
      this.#lines.line({
        stage,
        at: this.#auditor.timeText(
          stage === 'RequestReceived' ? this.#receivedAt : this.#auditor.wallTime(),
        ),
        impersonatedUser: this.#impersonated,
        annotations: stage === 'RequestReceived' ? this.#placed : this.#annotations,
        ...more,
      }),
    )
  }
}

/** Names the kinds of credentials that failed, without their content. */
function authenticationFailure({ headers, query, peer }: Request): string {
  const scheme = /^\s*(basic|bearer)\s/i.exec(headers['authorization'] ?? '')?.[1]?.toLowerCase()
  const tried = [
    ...(scheme === undefined ? [] : [scheme]),
    ...(query.has('access_token') ? ['access_token'] : []),
    ...(peer.clientCertificate() === undefined ? [] : ['x509']),
  ]
  return tried.length === 0
    ? 'Authentication failed, no credentials provided'
    : `Authentication failed, attempted: ${tried.join(', ')}`
}
