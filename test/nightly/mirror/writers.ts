/**
 * Clients that write events at the origin as recorders do: creates and patches in both groups,
 * deletes, and creates under names that were used before. Failures are part of the test: what
 * became of a request is for the observer to see.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiAnswer, ApiCall, EventClient } from '../../support/event-client.ts'
import type { OriginObserver } from './observers.ts'
import { Session } from './session.ts'

const workers = 24
const eventsPerWorkerMax = 400
/** Hundreds of writes a second for a while, then few. */
const burst = { everyMs: 10_000, lengthMs: 3_000, perSecond: 500, restPerSecond: 60 }
const failedMs = 250

interface Written {
  readonly namespace: string
  readonly name: string
  readonly group: 'core' | 'events'
  uid: string
  count: number
}

export class Writers {
  readonly counts = { creates: 0, patches: 0, deletes: 0, recreates: 0, failed: 0 }
  /** While false, nothing is deleted. */
  mayDelete = true
  readonly #open: () => Promise<EventClient>
  readonly #observer: OriginObserver
  readonly #namespaces: readonly string[]

  constructor(
    open: () => Promise<EventClient>,
    observer: OriginObserver,
    namespaces: readonly string[],
  ) {
    this.#open = open
    this.#observer = observer
    this.#namespaces = namespaces
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Array.from({ length: workers }, (_, index) => this.#work(index, signal)))
  }

  /** Creates events and deletes them at once. */
  async createAndDelete(count: number): Promise<void> {
    using session = new Session(this.#open)
    for (let index = 0; index < count; index++) {
      const made = this.#named(`quick-${index}`, index)
      await this.#create(session, made)
      await sleep(20)
      await this.#delete(session, made)
    }
  }

  async #work(index: number, signal: AbortSignal): Promise<void> {
    using session = new Session(this.#open)
    const own: Written[] = []
    for (let step = 0; !signal.aborted; step++) {
      try {
        await this.#step(session, own, `w${index}-${step}`)
      } catch {
        this.counts.failed++
        await sleep(failedMs)
      }
      const isBurst = performance.now() % burst.everyMs < burst.lengthMs
      const perSecond = isBurst ? burst.perSecond : burst.restPerSecond
      await sleep((workers / perSecond) * 1000 * (0.5 + Math.random()))
    }
  }

  async #step(session: Session, own: Written[], label: string): Promise<void> {
    const at = Math.floor(Math.random() * own.length)
    const chosen = own[at]
    const dice = Math.random()
    if (chosen === undefined || dice < 0.5) {
      const made = this.#named(label, Math.floor(Math.random() * 1000))
      await this.#create(session, made)
      own.push(made)
      // The oldest are left to expire.
      if (own.length > eventsPerWorkerMax) own.shift()
    } else if (dice < 0.8 || !this.mayDelete) {
      if (!(await this.#patch(session, chosen))) own.splice(at, 1)
    } else {
      own.splice(at, 1)
      await this.#delete(session, chosen)
      if (dice < 0.9) return
      await this.#create(session, { ...chosen, uid: '', count: 1 })
      this.counts.recreates++
    }
  }

  #named(label: string, number: number): Written {
    const namespace = this.#namespaces[number % this.#namespaces.length] ?? ''
    const name = `pod-${number}.${label}`
    return { namespace, name, group: number % 3 === 0 ? 'events' : 'core', uid: '', count: 1 }
  }

  async #create(session: Session, made: Written): Promise<void> {
    const body = made.group === 'core' ? coreEvent(made) : newEvent(made)
    const answer = await send(session, 'POST', { path: collection(made) }, body)
    if (answer.status !== 201) throw new Error(`a create got ${answer.status}`)
    const { metadata } = JSON.parse(answer.body.toString('utf8'))
    made.uid = metadata.uid
    this.counts.creates++
  }

  /** False when the event does not exist any more. */
  async #patch(session: Session, chosen: Written): Promise<boolean> {
    chosen.count++
    const now = new Date().toISOString()
    const isCore = chosen.group === 'core'
    const patch = isCore
      ? { count: chosen.count, lastTimestamp: seconds(now), message: `seen ${chosen.count} times` }
      : { series: { count: chosen.count, lastObservedTime: micros(now) } }
    const headers = { 'content-type': 'application/strategic-merge-patch+json' }
    const path = `${collection(chosen)}/${chosen.name}`
    const { status } = await send(session, 'PATCH', { path, headers }, patch)
    if (status === 404) return false
    if (status !== 200) throw new Error(`a patch got ${status}`)
    this.counts.patches++
    return true
  }

  async #delete(session: Session, chosen: Written): Promise<void> {
    this.#observer.deleting(chosen.uid)
    const path = `${collection(chosen)}/${chosen.name}`
    const preconditions = { uid: chosen.uid }
    const { status } = await send(session, 'DELETE', { path }, { preconditions })
    if (status !== 200 && status !== 404) throw new Error(`a delete got ${status}`)
    if (status === 200) this.counts.deletes++
  }
}

function send(session: Session, method: string, call: ApiCall, body: object): Promise<ApiAnswer> {
  const headers = { 'content-type': 'application/json', ...call.headers }
  return session.request({ ...call, method, headers, body: JSON.stringify(body) })
}

function collection({ group, namespace }: Written): string {
  const base = group === 'core' ? '/api/v1' : '/apis/events.k8s.io/v1'
  return `${base}/namespaces/${namespace}/events`
}

function coreEvent({ namespace, name }: Written): object {
  const now = seconds(new Date().toISOString())
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { namespace, name },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name: name.split('.')[0] },
    reason: 'BackOff',
    message: 'Back-off restarting failed container \u{1F433} "app"',
    source: { component: 'kubelet', host: 'node-1' },
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
    type: 'Warning',
  }
}

function newEvent({ namespace, name }: Written): object {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { namespace, name, labels: { writer: 'test' } },
    eventTime: micros(new Date().toISOString()),
    reportingController: 'example.com/writer',
    reportingInstance: 'writer-0',
    action: 'Binding',
    reason: 'FailedBinding',
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace, name: name.split('.')[0] },
    related: { apiVersion: 'v1', kind: 'Node', name: 'node-1' },
    note: 'no node fits',
    type: 'Normal',
  }
}

function seconds(time: string): string {
  return `${time.slice(0, 19)}Z`
}

function micros(time: string): string {
  return `${time.slice(0, 23)}000Z`
}
