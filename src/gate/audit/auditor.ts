import type { StatusError } from '../../api/status.ts'
import type { Request } from '../../http/exchange.ts'
import type { Attributes } from '../attributes.ts'
import type { Trail } from '../gate.ts'
import { ANONYMOUS, type User } from '../user.ts'
import { type AuditedResponse, AuditLines, MicroTimes } from './audit-event.ts'
import {
  AUDIT_STAGES,
  type AuditLevel,
  type AuditPolicy,
  type AuditRuling,
  type AuditStage,
} from './audit-policy.ts'
import { Strangers } from './strangers.ts'

const DECISION = 'authorization.k8s.io/decision'
const REASON = 'authorization.k8s.io/reason'
const TRUNCATED = 'audit.k8s.io/truncated'

export interface AuditorOptions {
  /** The policy as it is now. */
  policy(): AuditPolicy
  /** Takes a line with its newline. */
  write(line: string): void
  /** Resolves when an answer need not wait any longer for the lines about it. */
  written(): Promise<void>
  /** Milliseconds since 1970, with fractions. */
  wallTime(): number
  /** How many requests a second of callers without credentials are kept in full; 0 keeps all. */
  readonly strangersPerSecond?: number | undefined
  /** Milliseconds that never go back. */
  now?(): number
}

/** Keeps a trace of requests, as the policy wants it. */
export class Auditor {
  readonly #options: AuditorOptions
  readonly #levels: Record<AuditLevel, number> = {
    None: 0,
    Metadata: 0,
    Request: 0,
    RequestResponse: 0,
  }
  /** For answers that are made elsewhere, and must carry the same id. */
  readonly #ids = new WeakMap<Request, string>()
  readonly #strangers: Strangers
  readonly #keeper: Keeper
  #eventCount = 0

  constructor(options: AuditorOptions) {
    this.#options = options
    const times = new MicroTimes()
    this.#strangers = new Strangers({
      perSecond: options.strangersPerSecond ?? 0,
      now: () => options.now?.() ?? performance.now(),
    })
    this.#keeper = {
      strangers: this.#strangers,
      timeText: (ms) => times.text(ms),
      ruled: (level) => {
        this.#levels[level] += 1
      },
      written: () => {
        this.#eventCount += 1
      },
    }
  }

  /** How many requests were of each level. */
  get levels(): Readonly<Record<AuditLevel, number>> {
    return this.#levels
  }

  /** How many lines there were to write. */
  get eventCount(): number {
    return this.#eventCount
  }

  /** How many requests were only counted. */
  get omittedCount(): number {
    return this.#strangers.omittedCount
  }

  /** Writes down how many requests were only counted since the last call. */
  summarize(): void {
    for (const line of this.#strangers.summaries()) {
      this.#keeper.written()
      this.#options.write(line)
    }
  }

  begin(request: Request, attributes: Attributes, auditId: string): AuditTrail {
    this.#ids.set(request, auditId)
    return new AuditTrail({ request, attributes, auditId }, this.#options, this.#keeper)
  }

  /** The id under which a request is kept. */
  idOf(request: Request): string | undefined {
    return this.#ids.get(request)
  }
}

interface Asked {
  readonly request: Request
  readonly attributes: Attributes
  readonly auditId: string
}

interface Keeper {
  readonly strangers: Strangers
  /** A time as it stands in the log. */
  timeText(ms: number): string
  ruled(level: AuditLevel): void
  written(): void
}

/** What becomes of the bodies of a request; texts of objects are JSON on a single line. */
export interface AuditedBodies {
  readonly request?: string | undefined
  readonly response?: string | undefined
  /** One of them was too long to be kept, and is left out. */
  readonly isTruncated: boolean
}

/** How a request ended. */
export interface AuditedEnd {
  readonly code: number
  readonly error?: StatusError | undefined
  /** It ended with an error that nobody planned for. */
  readonly isPanic?: boolean
  readonly createdName?: string | undefined
  readonly bodies?: AuditedBodies | undefined
}

/** The trace of one request, from its arrival on. */
export class AuditTrail implements Trail {
  readonly #asked: Asked
  readonly #options: AuditorOptions
  readonly #keeper: Keeper
  readonly #receivedAt: number
  readonly #annotations: Record<string, string> = {}
  #user: User | undefined
  #ruling: AuditRuling | undefined
  /** Whether lines are written: of a stranger it is known when its request is decided on. */
  #isAdmitted: boolean | undefined
  #lines: AuditLines | undefined
  #impersonated: User | undefined
  #isOver = false

  constructor(asked: Asked, options: AuditorOptions, keeper: Keeper) {
    this.#asked = asked
    this.#options = options
    this.#keeper = keeper
    this.#receivedAt = options.wallTime()
  }

  identified(user: User): void {
    this.#user = user
    this.#rule()
    // Here, and not with the first line: the request drops headers and query in between.
    if (AUDIT_STAGES.some((stage) => this.#wants(stage))) this.#lines = this.#makeLines()
    if (!this.#isStranger) this.#receive(true)
  }

  impersonated(user: User): void {
    this.#impersonated = user
  }

  decided(decision: 'allow' | 'forbid' | undefined, reason: string): void {
    if (decision !== undefined) this.#annotations[DECISION] = decision
    this.#annotations[REASON] = reason
    if (this.#isAdmitted !== undefined) return
    // What a stranger did with objects is on record, however often it happens.
    this.#receive(decision === 'allow' && this.#asked.attributes.isResource)
  }

  /** Whether anything is kept of it; not yet known of somebody who is not known. */
  get isKept(): boolean {
    return this.#ruling?.level !== 'None'
  }

  /** What is held for the log until the request is over, of what its client sent. */
  get heldBytes(): number {
    return this.#lines?.heldBytes ?? 0
  }

  /** Whether the body that was sent is kept. */
  get keepsRequest(): boolean {
    const level = this.#ruling?.level
    return level === 'Request' || level === 'RequestResponse'
  }

  /** Whether the body of the answer is kept. */
  get keepsResponse(): boolean {
    return this.#ruling?.level === 'RequestResponse'
  }

  get keepsManagedFields(): boolean {
    return this.#ruling?.omitManagedFields !== true
  }

  /** A long answer begins. */
  started(code: number): void {
    this.#write('ResponseStarted', { response: { code } })
  }

  /** It is over. Only the first call counts. */
  ended(end: AuditedEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    if (this.#ruling === undefined) {
      this.#refused(end)
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

  /** Resolves when the answer may go out. */
  written(): Promise<void> {
    return this.#options.written()
  }

  /** Whoever did not show who it is has no user, and its request no other stage. */
  #refused({ code, error }: AuditedEnd): void {
    this.#rule()
    const stage = 'ResponseStarted'
    if (!this.#admit(false)) {
      this.#omit(stage, code)
      return
    }
    const message = code === 401 ? authenticationFailure(this.#asked.request) : undefined
    const response = message === undefined ? { code, error } : { code, error, message }
    this.#write(stage, { response })
  }

  /** Showed no credentials, or none that are valid. */
  get #isStranger(): boolean {
    return this.#user === undefined || this.#user === ANONYMOUS
  }

  #rule(): void {
    this.#ruling = this.#options.policy().rule(this.#user, this.#asked.attributes)
    this.#keeper.ruled(this.#ruling.level)
  }

  #receive(isSure: boolean): void {
    if (this.#admit(isSure)) this.#write('RequestReceived')
  }

  /** `isSure`: it is kept, however many there are. What nobody wants takes nothing from others. */
  #admit(isSure: boolean): boolean {
    const isWanted = this.#ruling?.level !== 'None'
    this.#isAdmitted = isSure || !isWanted || this.#keeper.strangers.admit()
    return this.#isAdmitted
  }

  #omit(stage: AuditStage, code: number): void {
    if (!this.#wants(stage)) return
    const at = this.#keeper.timeText(this.#receivedAt)
    this.#keeper.strangers.omit(code, this.#asked.request.peer.address, at)
  }

  #wants(stage: AuditStage): boolean {
    const ruling = this.#ruling
    return ruling !== undefined && ruling.level !== 'None' && !ruling.omitStages.has(stage)
  }

  #makeLines(): AuditLines {
    return new AuditLines({
      ...this.#asked,
      user: this.#user,
      isStranger: this.#isStranger,
      level: this.#ruling?.level ?? 'None',
      receivedAt: this.#keeper.timeText(this.#receivedAt),
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
    this.#keeper.written()
    this.#options.write(
      this.#lines.line({
        stage,
        at: this.#keeper.timeText(
          stage === 'RequestReceived' ? this.#receivedAt : this.#options.wallTime(),
        ),
        impersonatedUser: this.#impersonated,
        annotations: stage === 'RequestReceived' ? {} : this.#annotations,
        ...more,
      }),
    )
  }
}

/** Which kinds of credentials did not do, and nothing about what they were. */
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
