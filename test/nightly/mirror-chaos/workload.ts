/**
 * Writers at the origin. Each has a few events at a time: it creates them, patches their series,
 * deletes them and creates them again under the same name, and leaves each after some writes in
 * the state that it then has. So most names have a last state early in the run, and a loss of it
 * is not hidden by later writes.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApiAnswer, ApiCall, EventClient } from '../../support/event-client.ts'
import type { Random } from '../../support/random.ts'
import { makeEvent } from '../../support/wire-event.ts'
import { originCluster } from './site.ts'

const namespaces = ['default', 'kube-system', 'shop'] as const
const eventsAtATime = 6
const writesPerName = { least: 1, most: 9 }
const deleteShare = 0.25
/** A paused origin does not respond. */
const responseMsMax = 2_000
const pauseAfterFailureMs = 50

/** How many writes may be acknowledged by now; writers wait at it. */
export class Quota {
  #allowed = 0
  #used = 0
  #isClosed = false
  #waiting: (() => void)[] = []

  /** Acknowledged writes. */
  get used(): number {
    return this.#used
  }

  allow(writes: number): void {
    this.#allowed = writes
    this.#wake()
  }

  /** Ends all writers. */
  close(): void {
    this.#isClosed = true
    this.#wake()
  }

  /** Takes one write; undefined when there are no more. Give it back if it failed. */
  async take(): Promise<boolean> {
    while (this.#used >= this.#allowed && !this.#isClosed) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
    if (this.#isClosed) return false
    this.#used++
    return true
  }

  giveBack(): void {
    this.#used--
    this.#wake()
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

interface OwnEvent {
  readonly namespace: string
  readonly name: string
  /** Writes that are left for this name. */
  left: number
  /** The writer's own view: a write without a response may have been applied. */
  exists: boolean
  count: number
}

export interface Writes {
  creates: number
  recreates: number
  patches: number
  deletes: number
  /** Not acknowledged; they may have been applied. */
  failed: number
}

export interface WriterOptions {
  readonly number: number
  readonly random: Random
  readonly quota: Quota
  readonly connection: SharedConnection
  readonly writes: Writes
}

/** One connection for all writers, replaced when a request on it fails. */
export class SharedConnection implements Disposable {
  readonly #open: () => Promise<EventClient>
  #client: Promise<EventClient> | undefined

  constructor(open: () => Promise<EventClient>) {
    this.#open = open
  }

  /** Rejects when there was no response in time. */
  async request(call: ApiCall): Promise<ApiAnswer> {
    this.#client ??= this.#open()
    const opening = this.#client
    const late = sleep(responseMsMax, undefined, { ref: false }).then(() => {
      throw new Error('no response in time')
    })
    late.catch(() => {})
    try {
      const client = await Promise.race([opening, late])
      return await Promise.race([client.request(call), late])
    } catch (error) {
      if (this.#client === opening) this.#client = undefined
      opening.then(
        (client) => client[Symbol.dispose](),
        () => {},
      )
      throw error
    }
  }

  [Symbol.dispose](): void {
    this.#client?.then(
      (client) => client[Symbol.dispose](),
      () => {},
    )
  }
}

/** Writes until the quota is closed. */
export async function write(options: WriterOptions): Promise<void> {
  const { random, quota } = options
  const events: OwnEvent[] = []
  let named = 0
  while (await quota.take()) {
    const place = random.below(eventsAtATime)
    const known = events[place]
    const event = known !== undefined && known.left > 0 ? known : newEvent(options, named++)
    events[place] = event
    if (await writeOnce(options, event)) continue
    quota.giveBack()
    await sleep(pauseAfterFailureMs)
  }
}

function newEvent({ number, random }: WriterOptions, named: number): OwnEvent {
  return {
    namespace: random.pick(namespaces),
    name: `web-${number}.${named}`,
    left: Math.round(random.between(writesPerName.least, writesPerName.most)),
    exists: false,
    count: 0,
  }
}

/** False when the write was not acknowledged. */
async function writeOnce(options: WriterOptions, event: OwnEvent): Promise<boolean> {
  const { random, writes, connection } = options
  const isDelete = event.exists && random.chance(deleteShare)
  const kind = isDelete
    ? 'deletes'
    : event.exists
      ? 'patches'
      : event.count > 0
        ? 'recreates'
        : 'creates'
  let status: number
  try {
    ;({ status } = await connection.request(callFor(kind, event)))
  } catch {
    writes.failed++
    return false
  }
  // An earlier write without a response was applied.
  if (status === 409) event.exists = true
  else if (status === 404) event.exists = false
  if (status >= 300) {
    writes.failed++
    return false
  }
  writes[kind]++
  event.exists = !isDelete
  event.count++
  event.left--
  return true
}

function callFor(kind: keyof Writes, { namespace, name, count }: OwnEvent): ApiCall {
  const events = `/clusters/${originCluster}/apis/events.k8s.io/v1/namespaces/${namespace}/events`
  if (kind === 'deletes') return { method: 'DELETE', path: `${events}/${name}` }
  const lastObservedTime = new Date().toISOString().replace('Z', '000Z')
  if (kind === 'patches') {
    return {
      method: 'PATCH',
      path: `${events}/${name}`,
      headers: { 'content-type': 'application/merge-patch+json' },
      body: JSON.stringify({ series: { count: count + 1, lastObservedTime } }),
    }
  }
  return {
    method: 'POST',
    path: events,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(makeEvent(namespace, name, { note: `written for the ${count}. time` })),
  }
}
