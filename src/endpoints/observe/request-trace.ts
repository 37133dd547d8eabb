import { isDnsLabel } from '../../api/validation/names.ts'
import type { Attributes } from '../../gate/attributes.ts'
import { MASTERS, type User } from '../../gate/user.ts'
import type { Request, Response, Sent } from '../../http/exchange.ts'
import type { Span } from '../../lib/tracing/span.ts'
import type { Tracer, UndecidedTrace } from '../../tracing/tracer.ts'
import type { RequestLabels } from './request-tallies.ts'

/** Their `traceparent` decides whether a request is recorded, as in Kubernetes. */
const TRUSTED_GROUPS: ReadonlySet<string> = new Set([MASTERS, 'system:monitoring'])

/** What is known of a request without repeating a text of its client. */
export interface RequestFacts {
  readonly request: Pick<Request, 'method'>
  readonly auditId: string
  readonly attributes: Attributes
  readonly labels: RequestLabels | undefined
}

/**
 * What is recorded of a request by its way through serve.ts: one span for the whole of it, and one
 * for each step. Whether it is recorded at all is decided when its user is known.
 */
export class RequestTrace {
  readonly #trace: UndecidedTrace
  #isKept: boolean | undefined
  /** The step in progress. */
  #step: Span | undefined
  #isEnded = false

  /** Undefined, as nearly always, when the request is certainly not recorded. */
  static begin(tracer: Tracer | undefined, { headers }: Request): RequestTrace | undefined {
    const trace = tracer?.begin(headers['traceparent'])
    return trace && new RequestTrace(trace)
  }

  private constructor(trace: UndecidedTrace) {
    this.#trace = trace
    this.#step = trace.root.child('authentication')
  }

  /** The user is authenticated, and may have to wait for a slot. */
  arrived(sender: User, acquired: Promise<void> | undefined): Promise<void> | undefined {
    this.#decide(sender.origin === undefined && sender.groups.some(isTrusted))
    if (acquired === undefined) {
      this.#begin('authorization')
      return undefined
    }
    this.#begin('wait for a slot')
    return acquired.then(() => this.#begin('authorization'))
  }

  /** The request is permitted. Returns the span of which the handler's work is a part. */
  admitted(): Span | undefined {
    this.#begin(undefined)
    return this.#isKept === true ? this.#trace.root : undefined
  }

  /** The request failed in the step in progress. */
  failed(error: unknown): void {
    this.#step?.end(error)
    this.#step = undefined
  }

  /** The response is about to be sent. A watch ends here, once its initial events are sent. */
  responding(response: Response, facts: RequestFacts): void {
    this.#begin(undefined)
    if (this.#isKept === undefined) this.#decide(false)
    if (this.#isKept !== true) return
    const { root } = this.#trace
    describe(root, facts)
    root.set('http.response.status_code', response.status)
    if (response.longRunning !== true) {
      this.#begin('send')
      return
    }
    if (response.settled === undefined) this.#end(response.status)
    else void response.settled.then(() => this.#end(response.status))
  }

  /** Nothing more will be sent. */
  ended({ status, bytes }: Sent): void {
    if (this.#isKept !== true) return
    this.#trace.root.set('http.response.body.size', bytes)
    this.#end(status)
  }

  #decide(isTrusted: boolean): void {
    this.#begin(undefined)
    this.#isKept = this.#trace.decide({ isTrusted })
  }

  /** Ends the step in progress, and begins the next. */
  #begin(name: string | undefined): void {
    this.#step?.end()
    this.#step =
      name === undefined || this.#isKept === false ? undefined : this.#trace.root.child(name)
  }

  /** A status of 0: the client disconnected before the response. */
  #end(status: number): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#begin(undefined)
    this.#trace.root.end(status === 0 ? DISCONNECTED : status >= SERVER_ERROR ? FAILED : undefined)
  }
}

const SERVER_ERROR = 500
const FAILED = { kind: 'server-error' }
const DISCONNECTED = { kind: 'client-disconnected' }

function isTrusted(group: string): boolean {
  return TRUSTED_GROUPS.has(group)
}

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'])

/** A list or watch of one name is still one of a collection. */
const COLLECTIVE: ReadonlySet<string> = new Set(['list', 'watch'])

function describe(
  span: UndecidedTrace['root'],
  { request: { method }, auditId, attributes, labels }: RequestFacts,
): void {
  const shownMethod = METHODS.has(method) ? method : 'HTTP'
  const route = labels === undefined ? '' : routeOf(labels, attributes)
  span.name = route === '' ? shownMethod : `${shownMethod} ${route}`
  span.set('audit-id', auditId)
  span.set('http.request.method', shownMethod)
  if (route !== '') span.set('http.route', route)
  if (labels === undefined || labels.verb === 'other') return
  span.set('verb', attributes.verb)
  if (labels.resource === '' || !attributes.isResource) return
  span.set('group', labels.group)
  span.set('resource', labels.resource)
  if (isDnsLabel(attributes.namespace)) span.set('namespace', attributes.namespace)
}

/** The path of a Kubernetes API server's spans, without names; '' for a path that is not served. */
function routeOf(labels: RequestLabels, attributes: Attributes): string {
  const { group, version, resource, subresource } = labels
  if (resource === '' || !attributes.isResource) return subresource
  const base = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const within = attributes.namespace === '' ? '' : '/namespaces/{:namespace}'
  const isOne = attributes.name !== '' && !COLLECTIVE.has(attributes.verb)
  return `${base}${within}/${resource}${isOne ? '/{:name}' : ''}`
}
