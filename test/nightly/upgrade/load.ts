/**
 * The load during an upgrade: writers that create events with known names, read them back and patch
 * them, readers of lists in pages, and watchers that resume where they were. Everything that a
 * client received is remembered, so that afterwards lists and watches can be compared with it.
 */
import type { ClientHttp2Stream } from 'node:http2'
import { setTimeout as sleep } from 'node:timers/promises'
import { EventWatch } from '../../support/event-client.ts'
import { type Change, changeOf, sequenceFaults } from '../../support/watch-sequence.ts'
import { makeEvent, type WireEvent, type WireList } from '../../support/wire-event.ts'
import type { Fleet } from '../rolling/fleet.ts'
import {
  cutOutcome,
  type Outcome,
  type RollingCall,
  type RollingClient,
  retried,
} from '../rolling/http2-client.ts'

export interface LoadOptions {
  readonly writers: number
  readonly listers: number
  readonly watchers: number
}

export interface LoadReport {
  readonly requests: number
  readonly events: number
  readonly changes: number
  readonly lists: number
  /** Requests that crossed a GOAWAY, and were repeated. */
  readonly refused: number
  /** Requests that found no connection, and were repeated. */
  readonly notSent: number
  readonly watches: { readonly resumed: number; readonly received: number }
  /** Empty when no request failed, nothing was lost or duplicated, and there was enough to see. */
  readonly faults: readonly string[]
}

const NAMESPACE = 'shop'
const EVENTS = `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`
const PAGE = 150
const PAUSE_MS_MAX = 100
const RESUME_MS = 50
const CATCH_UP_MS_MAX = 30_000
/** Allowed for each kind at each replacement: a client loses one connection, and its requests are serial. */
const REPEATS_PER_CLIENT_MAX = 2
/** How many faults of one kind are described. */
const NAMED_MAX = 5

export class UpgradeLoad implements Disposable {
  readonly #fleet: Fleet
  readonly #clients: RollingClient[] = []
  readonly #counts = new Map<Outcome, number>()
  readonly #faults = new Map<string, string[]>()
  /** What watchers must receive. */
  readonly #owed: Change[] = []
  /** The newest version of each event that a response had, by name. */
  readonly #versions = new Map<string, string>()
  readonly #seen: Change[][] = []
  #running: Promise<unknown> | undefined
  #watching: Promise<unknown> | undefined
  #isDone = false
  #isCaughtUp = false
  #names = 0
  #lists = 0
  #resumed = 0

  constructor(fleet: Fleet) {
    this.#fleet = fleet
  }

  async start({ writers, listers, watchers }: LoadOptions): Promise<void> {
    const each = (count: number, work: (client: RollingClient) => Promise<void>) =>
      Promise.all(Array.from({ length: count }, () => work(this.#client())))
    const first = await this.#read<WireList>(this.#client(), EVENTS)
    const version = first?.metadata.resourceVersion ?? '0'
    this.#watching = each(watchers, (client) => this.#watch(client, version))
    this.#running = Promise.all([
      each(writers, (client) => this.#write(client)),
      each(listers, (client) => this.#list(client)),
    ])
  }

  /** Ends the load after this many replacements, waits for the watchers, and compares everything. */
  async end(replacements: number): Promise<LoadReport> {
    this.#isDone = true
    await this.#running
    await this.#untilCaughtUp()
    this[Symbol.dispose]()
    await this.#watching
    for (const [index, seen] of this.#seen.entries()) {
      for (const fault of sequenceFaults(this.#owed, seen)) this.#fault(`watcher ${index}`, fault)
    }
    for (let index = 0; index < this.#fleet.size; index++) await this.#compare(index)
    this.#judge(replacements)
    return this.#report()
  }

  /** A load that saw nothing proves nothing, and repeating again and again is a failure too. */
  #judge(replacements: number): void {
    const resumed = this.#resumed - this.#seen.length
    for (const [what, count] of Object.entries({
      'complete lists': this.#lists,
      events: this.#versions.size,
      'resumed watches': resumed,
    })) {
      if (count <= 0) this.#fault(`no ${what}`, 'nothing was tested')
    }
    const repeatsMax = REPEATS_PER_CLIENT_MAX * this.#clients.length * replacements
    for (const outcome of ['refused-stream', 'not-sent'] as const) {
      const count = this.#counts.get(outcome) ?? 0
      if (count > repeatsMax) this.#fault(`too many ${outcome}`, `${count} > ${repeatsMax}`)
    }
  }

  [Symbol.dispose](): void {
    this.#isDone = true
    this.#isCaughtUp = true
    for (const client of this.#clients) client[Symbol.dispose]()
  }

  #client(): RollingClient {
    const client = this.#fleet.client()
    this.#clients.push(client)
    return client
  }

  async #write(client: RollingClient): Promise<void> {
    while (!this.#isDone) {
      const name = `upgrade.${this.#names++}`
      const path = `${EVENTS}/${name}`
      const created = await this.#change(client, 'ADDED', {
        method: 'POST',
        path: EVENTS,
        body: JSON.stringify(makeEvent(NAMESPACE, name)),
      })
      await this.#readBack(client, path, created)
      const patched = await this.#change(client, 'MODIFIED', {
        method: 'PATCH',
        path,
        contentType: 'application/merge-patch+json',
        body: JSON.stringify({ metadata: { labels: { patched: name } } }),
      })
      await this.#readBack(client, path, patched)
      // The rate of a busy recorder, not as fast as possible.
      await sleep(Math.random() * PAUSE_MS_MAX)
    }
  }

  async #change(
    client: RollingClient,
    type: 'ADDED' | 'MODIFIED',
    call: RollingCall,
  ): Promise<WireEvent | undefined> {
    const event = await this.#send<WireEvent>(client, call, type === 'ADDED' ? 201 : 200)
    if (event === undefined) return undefined
    this.#owed.push(changeOf({ type, object: event }))
    this.#versions.set(event.metadata.name, event.metadata.resourceVersion ?? '')
    return event
  }

  /** Nobody else changes it, so a read must return what the write returned. */
  async #readBack(
    client: RollingClient,
    path: string,
    written: WireEvent | undefined,
  ): Promise<void> {
    const read = await this.#read<WireEvent>(client, path)
    if (written === undefined || read === undefined) return
    if (JSON.stringify(read) !== JSON.stringify(written)) this.#fault('wrong reads', path)
  }

  /** Every event that existed before is in a list once. */
  async #list(client: RollingClient): Promise<void> {
    while (!this.#isDone) {
      const before = [...this.#versions.keys()]
      const found = await this.#allPages(client)
      if (found === undefined) continue
      const unique = new Set(found)
      if (unique.size !== found.length) this.#fault('lists with duplicates', `${found.length}`)
      for (const name of before) if (!unique.has(name)) this.#fault('missing in a list', name)
      this.#lists += 1
      await sleep(Math.random() * PAUSE_MS_MAX)
    }
  }

  /** Undefined when a request failed. */
  async #allPages(client: RollingClient): Promise<readonly string[] | undefined> {
    const found: string[] = []
    let path: string | undefined = `${EVENTS}?limit=${PAGE}`
    while (path !== undefined) {
      const page: WireList | undefined = await this.#read<WireList>(client, path)
      if (page === undefined) return undefined
      found.push(...page.items.map(({ metadata }) => metadata.name))
      const next: string | undefined = page.metadata.continue
      path = next === undefined ? undefined : `${EVENTS}?limit=${PAGE}&continue=${next}`
    }
    return found
  }

  async #watch(client: RollingClient, from: string): Promise<void> {
    const seen: Change[] = []
    this.#seen.push(seen)
    let version = from
    while (!this.#isCaughtUp) {
      const path = `${EVENTS}?watch=true&allowWatchBookmarks=true&resourceVersion=${version}`
      const stream = client.stream(path)
      if (stream !== undefined) {
        this.#resumed += 1
        version = await this.#follow(stream, seen, version)
      }
      await sleep(RESUME_MS)
    }
  }

  /** Reads a watch to its end; returns the version to resume from. */
  async #follow(stream: ClientHttp2Stream, seen: Change[], from: string): Promise<string> {
    let version = from
    stream.on('error', () => {})
    try {
      for await (const frame of new EventWatch(stream)) {
        if (frame.type === 'ERROR') this.#fault('errors in watches', JSON.stringify(frame.object))
        version = frame.object.metadata.resourceVersion ?? version
        if (frame.type !== 'ERROR' && frame.type !== 'BOOKMARK') seen.push(changeOf(frame))
      }
    } catch (error) {
      const isFault = cutOutcome(stream) === 'lost' && !this.#isCaughtUp
      if (isFault) this.#fault('cut watches', String(error))
    }
    return version
  }

  async #untilCaughtUp(): Promise<void> {
    const newest = Math.max(0, ...this.#owed.map(({ version }) => version))
    const deadline = performance.now() + CATCH_UP_MS_MAX
    const isBehind = (seen: readonly Change[]) => (seen.at(-1)?.version ?? 0) < newest
    while (this.#seen.some(isBehind) && performance.now() < deadline) await sleep(20)
  }

  /** The list of one replica has the events that were acknowledged, in their last version. */
  async #compare(index: number): Promise<void> {
    const { items }: WireList = JSON.parse(await this.#fleet.ask(index, EVENTS))
    const left = new Map(this.#versions)
    for (const { metadata } of items) {
      const version = left.get(metadata.name)
      if (version === undefined) this.#fault(`unknown at replica ${index}`, metadata.name)
      else if (version !== metadata.resourceVersion) {
        this.#fault(`another version at replica ${index}`, metadata.name)
      }
      left.delete(metadata.name)
    }
    for (const name of left.keys()) this.#fault(`lost at replica ${index}`, name)
  }

  #read<T>(client: RollingClient, path: string): Promise<T | undefined> {
    return this.#send<T>(client, { method: 'GET', path }, 200)
  }

  async #send<T>(
    client: RollingClient,
    call: RollingCall,
    expected: number,
  ): Promise<T | undefined> {
    const { outcome, body } = await retried(
      () => client.send(call),
      (each) => this.#counts.set(each, (this.#counts.get(each) ?? 0) + 1),
    )
    if (outcome === expected) return JSON.parse(body)
    this.#fault('failed requests', `${call.method} ${call.path}: ${outcome} ${body.slice(0, 200)}`)
    return undefined
  }

  #fault(kind: string, what: string): void {
    const known = this.#faults.get(kind)
    if (known === undefined) this.#faults.set(kind, [what])
    else known.push(what)
  }

  #report(): LoadReport {
    const total = [...this.#counts.values()].reduce((sum, each) => sum + each, 0)
    return {
      requests: total,
      events: this.#versions.size,
      changes: this.#owed.length,
      lists: this.#lists,
      refused: this.#counts.get('refused-stream') ?? 0,
      notSent: this.#counts.get('not-sent') ?? 0,
      watches: {
        resumed: this.#resumed - this.#seen.length,
        received: this.#seen.reduce((sum, seen) => sum + seen.length, 0),
      },
      faults: [...this.#faults].map(
        ([kind, found]) => `${kind}: ${found.length}: ${found.slice(0, NAMED_MAX).join('; ')}`,
      ),
    }
  }
}
