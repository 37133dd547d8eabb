/** Lines of the audit log: Events of `audit.k8s.io/v1`, with members in the order of Kubernetes. */
import { isIP } from 'node:net'
import type { StatusDetails, StatusError, StatusReason } from '../../api/status.ts'
import type { Request } from '../../http/exchange.ts'
import { isSecretName } from '../../lib/log/log-fields.ts'
import { escapeTerminalControls } from '../../lib/log/log-text.ts'
import { REDACTED, withoutTokens } from '../../lib/log/token-scrub.ts'
import type { Attributes } from '../attributes.ts'
import type { User } from '../user.ts'
import type { AuditLevel, AuditStage } from './audit-policy.ts'
import { auditUri, URI_LENGTH_MAX } from './audit-uri.ts'

/** The maximum bytes of a member in a line, and the maximum number of addresses. */
interface Bounds {
  readonly uri: number
  readonly agent: number
  /** Applies to each part of a path, and to the verb. */
  readonly name: number
  readonly message: number
  /** More than any chain of proxies has, but a header may claim more. */
  readonly sourceIps: number
}

const BOUNDS: Bounds = {
  uri: URI_LENGTH_MAX,
  agent: 1024,
  name: URI_LENGTH_MAX,
  message: 3 * URI_LENGTH_MAX,
  sourceIps: 16,
}
/** Bounds for clients without valid credentials: at most 2 KiB per line, whatever they send. */
const UNAUTHENTICATED_BOUNDS: Bounds = {
  uri: 256,
  agent: 128,
  name: 64,
  message: 128,
  sourceIps: 2,
}
const CUT = '...TRUNCATED'
/** Reasons whose messages quote the request body, which a level without bodies must not log. */
const QUOTING: ReadonlySet<StatusReason> = new Set(['BadRequest', 'Invalid'])

/** Formats times with microseconds. Caches the text of the last second. */
export class MicroTimes {
  #second = Number.NaN
  #text = ''

  /** Takes milliseconds since 1970, with fractions. */
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

/** The data that the lines of all stages of a request share. */
export interface AuditSubject {
  readonly request: Request
  readonly attributes: Attributes
  readonly auditId: string
  readonly level: AuditLevel
  readonly user: User | undefined
  /** Whether the client has no valid credentials. */
  readonly isUnauthenticated: boolean
  readonly receivedAt: string
}

/** The data of one line. Objects are JSON on a single line. */
export interface AuditMoment {
  readonly stage: AuditStage
  readonly at: string
  readonly impersonatedUser: User | undefined
  readonly annotations: Readonly<Record<string, string>>
  readonly response?: AuditedResponse
  /** The name of a created object, when the path does not contain it. */
  readonly createdName?: string | undefined
  readonly requestObject?: string | undefined
  readonly responseObject?: string | undefined
}

export interface AuditedResponse {
  readonly code: number
  readonly error?: StatusError | undefined
  /** Replaces the message of the error. */
  readonly message?: string
}

/** Formats the lines of one request; the shared parts are formatted once. */
export class AuditLines {
  readonly #subject: AuditSubject
  readonly #bounds: Bounds
  readonly #head: string
  readonly #user: string
  readonly #source: string
  readonly #ref: string
  readonly #received: string

  constructor(subject: AuditSubject) {
    this.#subject = subject
    const bounds = subject.isUnauthenticated ? UNAUTHENTICATED_BOUNDS : BOUNDS
    this.#bounds = bounds
    const { request, attributes, user } = subject
    this.#head = `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"${subject.level}","auditID":${quoted(subject.auditId)},"stage":"`
    this.#user = `","requestURI":${quoted(auditUri(request, bounds.uri))},"verb":${quoted(shown(attributes.verb, bounds.name))},"user":${userText(user)}`
    const agent = request.headers['user-agent']
    const agentText =
      agent === undefined ? '' : `,"userAgent":${quoted(shown(agent, bounds.agent))}`
    this.#source = `,"sourceIPs":${sourceIps(request, bounds.sourceIps)}${agentText}`
    this.#ref = refText(attributes, bounds)
    this.#received = `,"requestReceivedTimestamp":"${subject.receivedAt}","stageTimestamp":"`
  }

  /** Bytes of client data that it retains. */
  get retainedBytes(): number {
    return this.#head.length + this.#user.length + this.#source.length + this.#ref.length
  }

  /** Returns a line with its newline. */
  line(moment: AuditMoment): string {
    const { impersonatedUser, requestObject, responseObject, annotations } = moment
    let line = `${this.#head}${moment.stage}${this.#user}`
    if (impersonatedUser !== undefined) line += `,"impersonatedUser":${userText(impersonatedUser)}`
    const { createdName } = moment
    line += this.#source
    line +=
      createdName === undefined
        ? this.#ref
        : refText(this.#subject.attributes, this.#bounds, createdName)
    if (moment.response !== undefined) line += this.#status(moment.response)
    if (requestObject !== undefined) line += `,"requestObject":${requestObject}`
    if (responseObject !== undefined) line += `,"responseObject":${responseObject}`
    line += `${this.#received}${moment.at}"`
    for (const _ in annotations) return lineOf(`${line},"annotations":${shownMap(annotations)}}`)
    return lineOf(`${line}}`)
  }

  #status({ code, error, message }: AuditedResponse): string {
    if (error === undefined && message === undefined) {
      return `,"responseStatus":{"metadata":{},"code":${code}}`
    }
    const isMessageHidden =
      error !== undefined && this.#subject.level === 'Metadata' && QUOTING.has(error.reason)
    const sent = error?.status()
    const { message: messageMax, name: nameMax } = this.#bounds
    return `,"responseStatus":${JSON.stringify({
      metadata: {},
      status: 'Failure',
      message: message ?? (isMessageHidden ? undefined : shown(sent?.message, messageMax)),
      reason: sent?.reason,
      details: isMessageHidden ? undefined : shownDetails(sent?.details, nameMax),
      code,
    })}`
  }
}

/** Also escapes characters that are valid in JSON but control a terminal, such as C1 controls. */
function lineOf(event: string): string {
  return `${escapeTerminalControls(event)}\n`
}

function refText(attributes: Attributes, { name: max }: Bounds, createdName?: string): string {
  if (!attributes.isResource) return ''
  const { resource, namespace, group, version, subresource } = attributes
  const name = attributes.name || createdName
  return `,"objectRef":${JSON.stringify({
    resource: shown(resource, max),
    namespace: shown(namespace, max) || undefined,
    name: shown(name, max),
    apiGroup: shown(group, max) || undefined,
    apiVersion: shown(version, max),
    subresource: shown(subresource, max) || undefined,
  })}`
}

/** Redacts tokens, which may occur in paths, headers and names, and truncates the text. */
function shown(text: string, bytesMax: number): string
function shown(text: string | undefined, bytesMax: number): string | undefined
function shown(text: string | undefined, bytesMax: number): string | undefined {
  if (text === undefined) return undefined
  // Text beyond the limit is not scanned.
  const clean = withoutTokens(text, bytesMax)
  const end = endWithin(clean, bytesMax)
  return end < clean.length || text.length > bytesMax ? `${clean.slice(0, end)}${CUT}` : clean
}

/** Text in which each character takes one byte. */
const PLAIN = /^[ !#-[\]-~]*$/
/** The size of an escape in JSON, such as `\u009b`. No character takes more. */
const ESCAPE_BYTES = 6

/** The length of the longest prefix that takes at most `bytesMax` bytes in a line. */
function endWithin(text: string, bytesMax: number): number {
  if (text.length * ESCAPE_BYTES <= bytesMax) return text.length
  if (text.length <= bytesMax && PLAIN.test(text)) return text.length
  let bytes = 0
  let end = 0
  for (const character of text) {
    bytes += PLAIN.test(character) ? 1 : ESCAPE_BYTES
    if (bytes > bytesMax) break
    end += character.length
  }
  return end
}

function shownDetails(details: StatusDetails | undefined, nameMax: number): object | undefined {
  return details?.name === undefined ? details : { ...details, name: shown(details.name, nameMax) }
}

/** Redacts tokens, which identity providers and impersonating clients may put into any field. */
function userText(user: User | undefined): string {
  if (user === undefined) return '{}'
  const { name, uid, groups, extra } = user
  return JSON.stringify({
    username: withoutTokens(name),
    uid: uid ? withoutTokens(uid) : undefined,
    groups: groups.map((group) => withoutTokens(group)),
    extra: shownExtra(extra),
  })
}

function shownExtra(extra: User['extra']): User['extra'] {
  if (extra === undefined) return undefined
  return Object.fromEntries(
    Object.entries(extra).map(([key, values]) => [
      withoutTokens(key),
      isSecretName(key) ? [REDACTED] : values.map((value) => withoutTokens(value)),
    ]),
  )
}

/** Redacts tokens: reasons contain user names, which may be tokens. */
function shownMap(texts: Readonly<Record<string, string>>): string {
  return JSON.stringify(texts, (_, value) =>
    typeof value === 'string' ? withoutTokens(value) : value,
  )
}

/** The addresses that proxies claim, and last that of the connection, the only proven one. */
function sourceIps({ headers, peer }: Request, countMax: number): string {
  const forwarded = headers['x-forwarded-for'] ?? headers['x-real-ip']
  if (forwarded === undefined) return `[${quoted(peer.address)}]`
  const claimed = forwarded
    .split(',')
    .map((text) => text.trim())
    .filter((text) => isIP(text) !== 0)
    .slice(-countMax)
  if (claimed.at(-1) !== peer.address) claimed.push(peer.address)
  return JSON.stringify(claimed)
}

function quoted(text: string): string {
  return JSON.stringify(text)
}
