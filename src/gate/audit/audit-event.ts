/** The lines of the audit log: Events of `audit.k8s.io/v1`, members in the order Kubernetes has them. */
import { isIP } from 'node:net'
import type { StatusDetails, StatusError, StatusReason } from '../../api/status.ts'
import type { Request } from '../../http/exchange.ts'
import { isSecretName } from '../../lib/log-fields.ts'
import { REDACTED, withoutTokens } from '../../lib/token-scrub.ts'
import type { Attributes } from '../attributes.ts'
import type { User } from '../user.ts'
import type { AuditLevel, AuditStage } from './audit-policy.ts'
import { auditUri } from './audit-uri.ts'

const USER_AGENT_LENGTH_MAX = 1024
/** A chain of proxies is never this long; a header may be. */
const SOURCE_IPS_MAX = 16
/** Their messages quote what was sent, which is no business of a level without bodies. */
const QUOTING: ReadonlySet<StatusReason> = new Set(['BadRequest', 'Invalid'])

/** Times as they stand in the log: six digits after the second. Those of one second are quick. */
export class MicroTimes {
  #second = Number.NaN
  #text = ''

  /** Milliseconds since 1970, with fractions. */
  text(ms: number): string {
    const second = Math.floor(ms / 1000)
    if (second !== this.#second) {
      this.#second = second
      this.#text = new Date(second * 1000).toISOString().slice(0, 20)
    }
    const micros = Math.floor((ms - second * 1000) * 1000)
    return `${this.#text}${String(micros).padStart(6, '0')}Z`
  }
}

/** What the log says of one request whatever its stage. */
export interface AuditSubject {
  readonly request: Request
  readonly attributes: Attributes
  readonly auditId: string
  readonly level: AuditLevel
  readonly user: User | undefined
  readonly receivedAt: string
}

/** What one line adds to it. Texts of objects are JSON on a single line. */
export interface AuditMoment {
  readonly stage: AuditStage
  readonly at: string
  readonly impersonatedUser: User | undefined
  readonly annotations: Readonly<Record<string, string>>
  readonly response?: AuditedResponse
  /** Of the object that was made, when the path has no name for it. */
  readonly createdName?: string | undefined
  readonly requestObject?: string | undefined
  readonly responseObject?: string | undefined
}

/** How the request ended. */
export interface AuditedResponse {
  readonly code: number
  readonly error?: StatusError | undefined
  /** Takes the place of the error's own message. */
  readonly message?: string
}

/** Makes the lines of one request; what they share is made once. */
export class AuditLines {
  readonly #subject: AuditSubject
  readonly #head: string
  readonly #user: string
  readonly #source: string
  readonly #ref: string
  readonly #received: string

  constructor(subject: AuditSubject) {
    this.#subject = subject
    const { request, attributes, user } = subject
    this.#head = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${subject.level}","auditID":${quoted(subject.auditId)},"stage":"`
    this.#user = `","requestURI":${quoted(auditUri(request))},"verb":${quoted(attributes.verb)},"user":${userText(user)}`
    const agent = request.headers['user-agent']
    const agentText = agent === undefined ? '' : `,"userAgent":${quoted(shownAgent(agent))}`
    this.#source = `,"sourceIPs":${sourceIps(request)}${agentText}`
    this.#ref = refText(attributes, undefined)
    this.#received = `,"requestReceivedTimestamp":"${subject.receivedAt}","stageTimestamp":"`
  }

  /** With its newline. */
  line(moment: AuditMoment): string {
    const { impersonatedUser, requestObject, responseObject, annotations } = moment
    let line = `${this.#head}${moment.stage}${this.#user}`
    if (impersonatedUser !== undefined) line += `,"impersonatedUser":${userText(impersonatedUser)}`
    const { createdName } = moment
    line += this.#source
    line += createdName === undefined ? this.#ref : refText(this.#subject.attributes, createdName)
    if (moment.response !== undefined) line += this.#status(moment.response)
    if (requestObject !== undefined) line += `,"requestObject":${requestObject}`
    if (responseObject !== undefined) line += `,"responseObject":${responseObject}`
    line += `${this.#received}${moment.at}"`
    for (const _ in annotations) return `${line},"annotations":${JSON.stringify(annotations)}}\n`
    return `${line}}\n`
  }

  #status({ code, error, message }: AuditedResponse): string {
    if (error === undefined && message === undefined) {
      return `,"responseStatus":{"metadata":{},"code":${code}}`
    }
    const isQuiet =
      error !== undefined && this.#subject.level === 'Metadata' && QUOTING.has(error.reason)
    const told = error?.status()
    return `,"responseStatus":${JSON.stringify({
      metadata: {},
      status: 'Failure',
      message: message ?? (isQuiet ? undefined : shown(told?.message)),
      reason: told?.reason,
      details: isQuiet ? undefined : shownDetails(told?.details),
      code,
    })}`
  }
}

function refText(attributes: Attributes, createdName: string | undefined): string {
  if (!attributes.isResource) return ''
  const { resource, namespace, group, version, subresource } = attributes
  const name = attributes.name || createdName
  return `,"objectRef":${JSON.stringify({
    resource: shown(resource),
    namespace: shown(namespace) || undefined,
    name: shown(name),
    apiGroup: shown(group) || undefined,
    apiVersion: shown(version),
    subresource: shown(subresource) || undefined,
  })}`
}

/** Tokens end up in paths, and from there in names and in what is said about them. */
function shown(text: string | undefined): string | undefined {
  return text === undefined ? undefined : withoutTokens(text)
}

function shownDetails(details: StatusDetails | undefined): object | undefined {
  return details?.name === undefined ? details : { ...details, name: shown(details.name) }
}

function userText(user: User | undefined): string {
  if (user === undefined) return '{}'
  const { name: username, uid, groups, extra } = user
  return JSON.stringify({ username, uid: uid || undefined, groups, extra: shownExtra(extra) })
}

/** Front proxies and those who impersonate may say whatever they like about a user. */
function shownExtra(extra: User['extra']): User['extra'] {
  if (extra === undefined) return undefined
  return Object.fromEntries(
    Object.entries(extra).map(([key, values]) => [
      key,
      isSecretName(key) ? [REDACTED] : values.map((value) => withoutTokens(value)),
    ]),
  )
}

function shownAgent(agent: string): string {
  const kept = withoutTokens(agent, USER_AGENT_LENGTH_MAX)
  return agent.length > USER_AGENT_LENGTH_MAX ? `${kept}...TRUNCATED` : kept
}

/** What proxies say first, the address we saw ourselves last: only that one is proved. */
function sourceIps({ headers, peer }: Request): string {
  const forwarded = headers['x-forwarded-for'] ?? headers['x-real-ip']
  if (forwarded === undefined) return `[${quoted(peer.address)}]`
  const claimed = forwarded
    .split(',')
    .map((text) => text.trim())
    .filter((text) => isIP(text) !== 0)
    .slice(-SOURCE_IPS_MAX)
  if (claimed.at(-1) !== peer.address) claimed.push(peer.address)
  return JSON.stringify(claimed)
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
