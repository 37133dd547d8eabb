import { isDnsLabel } from '../../api/validation/names.ts'
import type { Attributes } from '../../gate/attributes.ts'
import { MASTERS, UNAUTHENTICATED, type User } from '../../gate/user.ts'
import type { Request, Response, Sent } from '../../http/exchange.ts'
import type { Span } from '../../lib/tracing/span.ts'
import type { RecordedSpan } from '../../tracing/trace.ts'
import type { Sender, Tracer, UndecidedTrace } from '../../tracing/tracer.ts'
import type { RequestLabels } from './request-tallies.ts'

/** The `traceparent` of these users decides whether a request is recorded, as in Kubernetes. */
const TRUSTED_GROUPS: ReadonlySet<string> = new Set([MASTERS, 'system:monitoring'])

export interface RequestFacts {
  readonly request: Pick<Request, 'method' | 'headers'>
  readonly auditId: string
  readonly attributes: Attributes
  readonly labels: RequestLabels | undefined
}

/** A client whose credentials are missing, invalid or unchecked. */
const UNKNOWN: Sender = { isKnown: false, isTrusted: false }

/**
 * Records the path of a request through serve.ts: one span for all of it, and one for each step.
 * Whether it is recorded at all is decided when its user is known.
 */
export class RequestTrace {
  /** Undefined once this is decided. */
  #undecided: UndecidedTrace | undefined
  #isKnown = false
  /** Undefined when the request is not recorded. */
  #root: RecordedSpan | undefined
  /** The step in progress. */
  #step: Span | undefined

  /** Returns undefined when the request is certainly not recorded, as for nearly all requests. */
  static begin(tracer: Tracer | undefined, { headers }: Request): RequestTrace | undefined {
    const trace = tracer?.begin(headers['traceparent'])
    return trace && new RequestTrace(trace)
  }

  private constructor(undecided: UndecidedTrace) {
    this.#undecided = undecided
  }

  /** Called when the user is known. */
  authenticated({ origin, groups }: User): void {
    this.#isKnown = !groups.includes(UNAUTHENTICATED)
    this.#decide({
      isKnown: this.#isKnown,
      isTrusted: origin === undefined && groups.some(isTrusted),
    })
    this.#root?.firstChild('authentication').end()
  }

  /** Ends the step in progress and begins the next one. */
  step(name: string): void {
    this.#begin(name)
  }

  /** Called when the request has a slot. Returns the parent span of the handler's work. */
  admitted(): Span | undefined {
    this.#begin(undefined)
    return this.#root
  }

  /** Called when the request fails in the step in progress. */
  failed(error: unknown): void {
    if (this.#undecided !== undefined) {
      this.#decide(UNKNOWN)
      this.#step = this.#root?.firstChild('authentication')
    }
    this.#step?.end(error)
    this.#step = undefined
  }

  /** Called before the response is sent. A watch ends once its initial events are sent. */
  responding(response: Response, facts: RequestFacts): void {
    this.#begin(undefined)
    this.#decide(UNKNOWN)
    const root = this.#root
    if (root === undefined) return
    describe(root, facts, this.#isKnown)
    if (response.longRunning !== true) this.#begin('send')
    else if (response.settled === undefined) this.#end(response.status)
    else void response.settled.then(() => this.#end(response.status))
  }

  /** Called when nothing more will be sent. */
  ended({ status, bytes }: Sent): void {
    this.#root?.set('http.response.body.size', bytes)
    this.#end(status)
  }

  #decide(sender: Sender): void {
    this.#root ??= this.#undecided?.decide(sender)
    this.#undecided = undefined
  }

  #begin(name: string | undefined): void {
    this.#step?.end()
    this.#step = name === undefined ? undefined : this.#root?.child(name)
  }

  /** `status` is 0 if the client disconnected before the response. Only the first call counts. */
  #end(status: number): void {
    this.#begin(undefined)
    if (status !== 0) this.#root?.set('http.response.status_code', status)
    this.#root?.end(status === 0 ? DISCONNECTED : status >= SERVER_ERROR ? FAILED : undefined)
  }
}

const SERVER_ERROR = 500
const FAILED = { kind: 'server-error' }
const DISCONNECTED = { kind: 'client-disconnected' }

function isTrusted(group: string): boolean {
  return TRUSTED_GROUPS.has(group)
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** Verbs on a collection, even if the selector requires one name. */
const COLLECTIVE: ReadonlySet<string> = new Set(['list', 'watch'])

/** Omits texts of an unknown client: its audit id, unless it is ours, and the namespace. */
function describe(
  span: RecordedSpan,
  { request: { method, headers }, auditId, attributes, labels }: RequestFacts,
  isKnown: boolean,
): void {
  const shownMethod = METHODS.has(method) ? method : 'HTTP'
  const route = labels === undefined ? '' : routeOf(labels, attributes)
  span.name = route === '' ? shownMethod : `${shownMethod} ${route}`
  if (isKnown || headers['audit-id'] !== auditId) span.set('audit-id', auditId)
  span.set('http.request.method', shownMethod)
  if (route !== '') span.set('http.route', route)
  if (labels === undefined || labels.verb === 'other') return
  span.set('verb', attributes.verb)
  if (labels.resource === '' || !attributes.isResource) return
  span.set('group', labels.group)
  span.set('resource', labels.resource)
  if (isKnown && isDnsLabel(attributes.namespace)) span.set('namespace', attributes.namespace)
}

/** The route in the spans of a Kubernetes API server; '' for a path that is not served. */
function routeOf(labels: RequestLabels, attributes: Attributes): string {
  const { group, version, resource, subresource } = labels
  if (resource === '' || !attributes.isResource) return subresource
  const base = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const within = attributes.namespace === '' ? '' : '/namespaces/{:namespace}'
  const isOne = attributes.name !== '' && !COLLECTIVE.has(attributes.verb)
  return `${base}${within}/${resource}${isOne ? '/{:name}' : ''}`
}
