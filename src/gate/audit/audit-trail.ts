import type { StatusError } from '../../api/status.ts'
import type { Request } from '../../http/exchange.ts'
import type { Attributes } from '../attributes.ts'
import type { Trail } from '../gate.ts'
import { ANONYMOUS, auditedUser, type User } from '../user.ts'
import { type AuditedResponse, AuditLines } from './audit-event.ts'
import {
  AUDIT_STAGES,
  type AuditLevel,
  type AuditPolicy,
  type AuditRuling,
  type AuditStage,
} from './audit-policy.ts'
import type { UnauthenticatedSampler } from './unauthenticated-sampling.ts'

const DECISION = 'authorization.k8s.io/decision'
const REASON = 'authorization.k8s.io/reason'
const CLUSTER = 'tidings.dev/cluster'
const TRUNCATED = 'audit.k8s.io/truncated'

/** The audit log and its policy. */
export interface AuditSink {
  /** The current policy. */
  policy(): AuditPolicy
  /** Takes a line with its newline. */
  write(line: string): void
  /** Resolves when a response need not wait any longer for its lines to be written. */
  written(): Promise<void>
  /** Milliseconds since 1970, with fractions. */
  wallTime(): number
}

/** What all trails of an auditor share. */
export interface TrailShared {
  readonly sampler: UnauthenticatedSampler
  /** A time in the format of the log. */
  timeText(ms: number): string
  /** Counts a request by its level. */
  ruled(level: AuditLevel): void
  /** Counts a line. */
  written(): void
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
  /** One of them was too long and is left out. */
  readonly isTruncated: boolean
}

/** How a request ended. */
export interface AuditedEnd {
  readonly code: number
  readonly error?: StatusError | undefined
  /** It ended with an unexpected error, a bug. */
  readonly isPanic?: boolean
  readonly createdName?: string | undefined
  readonly bodies?: AuditedBodies | undefined
}

/** Writes the audit lines of one request, from its arrival on. */
export class AuditTrail implements Trail {
  readonly #audited: AuditedRequest
  readonly #sink: AuditSink
  readonly #shared: TrailShared
  readonly #receivedAt: number
  /** Of the first line: what the path says. */
  readonly #placed: Readonly<Record<string, string>>
  readonly #annotations: Record<string, string>
  #user: User | undefined
  #ruling: AuditRuling | undefined
  /** Whether lines are written. Of an unauthenticated client, decided with its authorization. */
  #isAdmitted: boolean | undefined
  #lines: AuditLines | undefined
  #impersonated: User | undefined
  #isOver = false

  constructor(audited: AuditedRequest, sink: AuditSink, shared: TrailShared) {
    this.#audited = audited
    this.#sink = sink
    this.#shared = shared
    const { cluster, isPrefixed } = audited.attributes
    this.#placed = isPrefixed === true ? { [CLUSTER]: cluster } : {}
    this.#annotations = { ...this.#placed }
    this.#receivedAt = sink.wallTime()
  }

  identified(user: User): void {
    this.#user = auditedUser(user)
    this.#rule()
    // Not with the first line, since the request drops its headers and query before that.
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

  /** Whether the policy wants any line. True before the user is known. */
  get isKept(): boolean {
    return this.#ruling?.level !== 'None'
  }

  /** Bytes of client data that are held for the log until the request ends. */
  get heldBytes(): number {
    return this.#lines?.heldBytes ?? 0
  }

  /** Whether the request body is logged. */
  get keepsRequest(): boolean {
    const level = this.#ruling?.level
    return level === 'Request' || level === 'RequestResponse'
  }

  /** Whether the response body is logged. */
  get keepsResponse(): boolean {
    return this.#ruling?.level === 'RequestResponse'
  }

  get keepsManagedFields(): boolean {
    return this.#ruling?.omitManagedFields !== true
  }

  /** A long-running response starts. */
  started(code: number): void {
    this.#write('ResponseStarted', { response: { code } })
  }

  /** The request has ended. Only the first call counts. */
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
    return this.#sink.written()
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

  /** Without valid credentials. */
  get #isUnauthenticated(): boolean {
    return this.#user === undefined || this.#user === ANONYMOUS
  }

  #rule(): void {
    this.#ruling = this.#sink.policy().rule(this.#user, this.#audited.attributes)
    this.#shared.ruled(this.#ruling.level)
  }

  #receive(isAlwaysLogged: boolean): void {
    if (this.#admit(isAlwaysLogged)) this.#write('RequestReceived')
  }

  /** A request that the policy does not want logged takes nothing from the sampler's allowance. */
  #admit(isAlwaysLogged: boolean): boolean {
    const isWanted = this.#ruling?.level !== 'None'
    this.#isAdmitted = isAlwaysLogged || !isWanted || this.#shared.sampler.admit()
    return this.#isAdmitted
  }

  #omit(stage: AuditStage, code: number): void {
    if (!this.#wants(stage)) return
    const at = this.#shared.timeText(this.#receivedAt)
    this.#shared.sampler.omit(code, this.#audited.request.peer.address, at)
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
      receivedAt: this.#shared.timeText(this.#receivedAt),
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
    this.#shared.written()
    this.#sink.write(
      this.#lines.line({
        stage,
        at: this.#shared.timeText(
          stage === 'RequestReceived' ? this.#receivedAt : this.#sink.wallTime(),
        ),
        impersonatedUser: this.#impersonated,
        annotations: stage === 'RequestReceived' ? this.#placed : this.#annotations,
        ...more,
      }),
    )
  }
}

/** Names the kinds of credentials that failed, and nothing of their content. */
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
