/** A client of the target: it watches through the whole run, and lists again when it must. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type EventClient, EventWatch } from '../../support/event-client.ts'
import type { Sighting } from './history.ts'
import { type MirroredEvent, nameOf, originOf } from './recorder.ts'
import { targetCluster } from './site.ts'

const events = `/clusters/${targetCluster}/api/v1/events`
const retryMs = 100
const pageSize = 500
const silentMsMax = 5_000

interface Frame {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR'
  readonly object: MirroredEvent & { readonly code?: number }
}

interface Listing {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string }
  readonly items: readonly MirroredEvent[]
}

export class Observer {
  readonly sightings: Sighting[] = []
  /** Watches that were started. */
  watches = 0
  lists = 0
  readonly #open: (attempt: number) => Promise<EventClient>
  readonly #end = new AbortController()
  #version: string | undefined
  /** The last state of each name. */
  readonly #states = new Map<string, Sighting>()
  readonly #running: Promise<void>

  /** `open`: connects to a replica of the target, to another one at each attempt. */
  constructor(open: (attempt: number) => Promise<EventClient>) {
    this.#open = open
    this.#running = this.#run()
  }

  /** Returns whether these are the last states that it has received. */
  hasReceived(states: readonly Sighting[]): boolean {
    return states.every(({ name, version }) => this.#states.get(name)?.version === version)
  }

  async stop(): Promise<void> {
    this.#end.abort()
    await this.#running
  }

  async #run(): Promise<void> {
    for (let attempt = 0; !this.#end.signal.aborted; attempt++) {
      try {
        using client = await bounded(this.#open(attempt))
        this.#version ??= await this.#list(client)
        await this.#watch(client)
      } catch {
        // A fault. It continues at another replica.
        await sleep(retryMs)
      }
    }
  }

  async #list(client: EventClient): Promise<string> {
    this.lists++
    const { items, resourceVersion } = await bounded(listAll(client))
    const known = new Set(items.map(({ name }) => name))
    const gone = [...this.#states.values()].filter(({ name }) => !known.has(name))
    for (const state of gone) this.#see({ ...state, type: 'delete' })
    for (const item of items) this.#see(item)
    return resourceVersion
  }

  async #watch(client: EventClient): Promise<void> {
    this.watches++
    const query = new URLSearchParams({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#version ?? '',
    })
    const stream = client.send({ path: `${events}?${query}` })
    const end = () => stream.close()
    // A paused replica is left for another one.
    stream.setTimeout(silentMsMax, end)
    this.#end.signal.addEventListener('abort', end)
    try {
      for await (const frame of new EventWatch(stream)) this.#take(frame as unknown as Frame)
    } finally {
      this.#end.signal.removeEventListener('abort', end)
    }
  }

  #take({ type, object }: Frame): void {
    if (type === 'ERROR') {
      if (object.code === 410) this.#version = undefined
      throw new Error('the watch failed')
    }
    this.#version = object.metadata.resourceVersion
    if (type !== 'BOOKMARK') this.#see(sightingOf(object, type === 'DELETED'))
  }

  #see(sighting: Sighting): void {
    this.sightings.push(sighting)
    if (sighting.type === 'put') this.#states.set(sighting.name, sighting)
    else this.#states.delete(sighting.name)
  }
}

/** The events of the mirrored cluster, as a replica lists them. */
export async function listAll(
  client: EventClient,
): Promise<{ readonly items: readonly Sighting[]; readonly resourceVersion: string }> {
  const items: Sighting[] = []
  for (let token: string | undefined = ''; ; ) {
    const query = new URLSearchParams({ limit: String(pageSize) })
    if (token !== '') query.set('continue', token)
    const { status, body } = await client.request({ path: `${events}?${query}` })
    if (status !== 200) throw new Error(`the list was answered with ${status}: ${body}`)
    const page: Listing = JSON.parse(body.toString())
    items.push(...page.items.map((item) => sightingOf(item, false)))
    token = page.metadata.continue
    if (token === undefined || token === '') {
      return { items, resourceVersion: page.metadata.resourceVersion }
    }
  }
}

function sightingOf(event: MirroredEvent, isDeleted: boolean): Sighting {
  const type = isDeleted ? 'delete' : 'put'
  return { type, name: nameOf(event), uid: event.metadata.uid, ...originOf(event) }
}

async function bounded<T>(promise: Promise<T>): Promise<T> {
  const late = sleep(silentMsMax, undefined, { ref: false }).then(() => {
    throw new Error('no response in time')
  })
  late.catch(() => {})
  return await Promise.race([promise, late])
}
