/**
 * The load during an upgrade: writers that create events with known names, read them back, patch them
 * and delete some, readers of lists in pages, and watchers that resume where they were. Everything
 * that a client received is remembered, so that afterwards lists and watches can be compared with it.
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
  type RollingAnswer,
  type RollingCall,
  type RollingClient,
  retried,
} from '../rolling/http2-client.ts'

export interface LoadOptions {
  readonly writers: number
  readonly listers: number
  readonly watchers: number
  /**
   * Set while etcd itself is replaced: a request that is refused (503) is repeated, and a write with
   * an unknown outcome (504) must be seen by every watcher or by none. Otherwise both are faults.
   */
  readonly allowsOutages?: boolean
  /** How long a watch lasts until it is resumed; by default until the replica stops. */
  readonly watchSeconds?: number
}

export interface LoadReport {
  readonly requests: number
  readonly events: number
  readonly deleted: number
  readonly changes: number
  readonly lists: number
  /** Requests that were refused because etcd did not respond, and repeated. */
  readonly unavailable: number
  /** Writes whose outcome the response did not know. */
  readonly doubtful: number
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
/** One of so many events is deleted. */
const DELETE_EACH = 4
/** `Retry-After` of a refusal. */
const REFUSED_MS = 1_000
const REFUSALS_MAX = 30
/** Allowed for each kind at each replacement: a client loses one connection, and its requests are serial. */
const REPEATS_PER_CLIENT_MAX = 2
/** How many faults of one kind are described. */
const NAMED_MAX = 5

/** A write with an unknown outcome: its change, and the version of the event before it. */
interface Doubt {
  readonly type: ChangeType
  readonly version: string | undefined
}

type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED'

export class UpgradeLoad implements Disposable {
  readonly #fleet: Fleet
  readonly #options: LoadOptions
  readonly #clients: RollingClient[] = []
  readonly #counts = new Map<Outcome, number>()
  readonly #faults = new Map<string, string[]>()
  /** What watchers must receive. */
  readonly #owed: Change[] = []
  /** The newest version of each event that a response had, by name; without those that are deleted. */
  readonly #versions = new Map<string, string>()
  readonly #deleted = new Set<string>()
  /** By name: nobody changes that event any more. */
  readonly #doubts = new Map<string, Doubt>()
  readonly #seen: Change[][] = []
  #running: Promise<unknown> | undefined
  #watching: Promise<unknown> | undefined
  #isDone = false
  #isCaughtUp = false
  #names = 0
  #lists = 0
  #resumed = 0
  /** The newest version that any response had: no later read may be older. */
  #newest = 0

  constructor(fleet: Fleet, options: LoadOptions) {
    this.#fleet = fleet
    this.#options = options
  }

  async start(): Promise<void> {
    const { writers, listers, watchers } = this.#options
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
    this.#settle()
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
      'deleted events': this.#deleted.size,
      'resumed watches': resumed,
    })) {
      if (count <= 0) this.#fault(`no ${what}`, 'nothing was tested')
    }
    const repeatsMax = REPEATS_PER_CLIENT_MAX * this.#clients.length * replacements
    for (const outcome of ['refused-stream', 'not-sent', 503, 504] as const) {
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
      await this.#writeOne(client, this.#names++)
      // The rate of a busy recorder, not as fast as possible.
      await sleep(Math.random() * PAUSE_MS_MAX)
    }
  }

  async #writeOne(client: RollingClient, number: number): Promise<void> {
    const name = `upgrade.${number}`
    const path = `${EVENTS}/${name}`
    const created = await this.#change(client, name, 'ADDED', {
      method: 'POST',
      path: EVENTS,
      body: JSON.stringify(makeEvent(NAMESPACE, name)),
    })
    await this.#readBack(client, path, created)
    if (this.#doubts.has(name)) return
    const patched = await this.#change(client, name, 'MODIFIED', {
      method: 'PATCH',
      path,
      contentType: 'application/merge-patch+json',
      // A raised count makes the server record more than the event says.
      body: JSON.stringify({
        metadata: { labels: { patched: name } },
        series: { count: 2, lastObservedTime: microTimeNow() },
      }),
    })
    await this.#readBack(client, path, patched)
    if (this.#doubts.has(name) || number % DELETE_EACH !== 0) return
    await this.#delete(client, name, path)
  }

  /** Undefined when it was not acknowledged. */
  async #change(
    client: RollingClient,
    name: string,
    type: 'ADDED' | 'MODIFIED',
    call: RollingCall,
  ): Promise<WireEvent | undefined> {
    const answer = await this.#send(client, call)
    if (this.#isInDoubt(answer)) {
      this.#doubts.set(name, { type, version: this.#versions.get(name) })
      return undefined
    }
    const event = this.#parse<WireEvent>(call, answer, type === 'ADDED' ? 201 : 200)
    if (event === undefined) return undefined
    this.#owed.push(changeOf({ type, object: event }))
    const { resourceVersion = '' } = event.metadata
    this.#versions.set(name, resourceVersion)
    this.#newest = Math.max(this.#newest, Number(resourceVersion))
    return event
  }

  async #delete(client: RollingClient, name: string, path: string): Promise<void> {
    const call = { method: 'DELETE', path } as const
    const version = this.#versions.get(name)
    this.#versions.delete(name)
    const answer = await this.#send(client, call)
    if (this.#isInDoubt(answer)) this.#doubts.set(name, { type: 'DELETED', version })
    else if (this.#parse(call, answer, 200) !== undefined) {
      this.#deleted.add(name)
      const { outcome } = await this.#send(client, { method: 'GET', path })
      if (outcome !== 404) this.#fault('deleted events that are read', `${path}: ${outcome}`)
    }
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

  /** Every event that existed before, and still does, is in a list once, and no deleted one. */
  async #list(client: RollingClient): Promise<void> {
    while (!this.#isDone) {
      const before = [...this.#versions.keys()]
      const deleted = [...this.#deleted]
      const found = await this.#allPages(client)
      if (found === undefined) continue
      const unique = new Set(found)
      if (unique.size !== found.length) this.#fault('lists with duplicates', `${found.length}`)
      const missing = before.filter((name) => !unique.has(name) && this.#versions.has(name))
      for (const name of missing) this.#fault('missing in a list', name)
      for (const name of deleted.filter((each) => unique.has(each))) {
        this.#fault('deleted, but in a list', name)
      }
      this.#lists += 1
      await sleep(Math.random() * PAUSE_MS_MAX)
    }
  }

  /** Undefined when a request failed. All pages are of one state, and no older than the newest read. */
  async #allPages(client: RollingClient): Promise<readonly string[] | undefined> {
    const found: string[] = []
    const newestBefore = this.#newest
    let path: string | undefined = `${EVENTS}?limit=${PAGE}`
    while (path !== undefined) {
      const page: WireList | undefined = await this.#read<WireList>(client, path)
      if (page === undefined) return undefined
      const version = Number(page.metadata.resourceVersion)
      if (version < newestBefore) {
        this.#fault('reads back in time', `a list at ${version} after ${newestBefore}`)
      }
      this.#newest = Math.max(this.#newest, version)
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
    const { watchSeconds } = this.#options
    const end = watchSeconds === undefined ? '' : `&timeoutSeconds=${watchSeconds}`
    while (!this.#isCaughtUp) {
      const path = `${EVENTS}?watch=true&allowWatchBookmarks=true&resourceVersion=${version}${end}`
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
    let status = 200
    stream.on('error', () => {})
    stream.on('response', (headers) => {
      status = headers[':status'] ?? status
    })
    try {
      for await (const frame of new EventWatch(stream)) {
        if (status !== 200) this.#refusedWatch(status, JSON.stringify(frame))
        if (status !== 200) break
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

  #refusedWatch(status: number, body: string): void {
    this.#counts.set(status, (this.#counts.get(status) ?? 0) + 1)
    const isOutage = this.#options.allowsOutages === true && (status === 503 || status === 504)
    if (!isOutage) this.#fault('refused watches', `${status} ${body.slice(0, 200)}`)
  }

  async #untilCaughtUp(): Promise<void> {
    const newest = Math.max(0, ...this.#owed.map(({ version }) => version))
    const deadline = performance.now() + CATCH_UP_MS_MAX
    const isBehind = (seen: readonly Change[]) => (seen.at(-1)?.version ?? 0) < newest
    while (this.#seen.some(isBehind) && performance.now() < deadline) await sleep(20)
  }

  /**
   * Completes what is owed by what only a watch tells: the version of a delete, and whether a write with
   * an unknown outcome happened. The first watcher decides, and the others and all lists must agree.
   */
  #settle(): void {
    const found = new Map(this.#seen[0]?.map((change) => [`${change.type} ${change.key}`, change]))
    const seen = (type: ChangeType, name: string) => found.get(`${type} ${NAMESPACE}/${name}`)
    for (const name of this.#deleted) {
      const missing = { type: 'DELETED', key: `${NAMESPACE}/${name}`, version: 0 } as const
      this.#owed.push(seen('DELETED', name) ?? missing)
    }
    for (const [name, { type, version }] of this.#doubts) {
      const change = seen(type, name)
      if (change !== undefined) this.#owed.push(change)
      if (change !== undefined && type !== 'DELETED') {
        this.#versions.set(name, String(change.version))
      } else if (change === undefined && version !== undefined) {
        this.#versions.set(name, version)
      }
    }
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

  async #read<T>(client: RollingClient, path: string): Promise<T | undefined> {
    const call = { method: 'GET', path } as const
    return this.#parse<T>(call, await this.#send(client, call), 200)
  }

  async #send(client: RollingClient, call: RollingCall): Promise<RollingAnswer> {
    for (let refusals = 0; ; refusals++) {
      const answer = await retried(
        () => client.send(call),
        (each) => this.#counts.set(each, (this.#counts.get(each) ?? 0) + 1),
      )
      const { outcome } = answer
      // A read has no outcome that could be unknown.
      const isRefused = outcome === 503 || (outcome === 504 && call.method === 'GET')
      const mayRepeat = this.#options.allowsOutages === true && isRefused
      if (!mayRepeat || refusals === REFUSALS_MAX) return answer
      await sleep(REFUSED_MS)
    }
  }

  #isInDoubt({ outcome }: RollingAnswer): boolean {
    return this.#options.allowsOutages === true && outcome === 504
  }

  #parse<T>(
    { method, path }: RollingCall,
    { outcome, body }: RollingAnswer,
    expected: number,
  ): T | undefined {
    if (outcome === expected) return JSON.parse(body)
    this.#fault('failed requests', `${method} ${path}: ${outcome} ${body.slice(0, 200)}`)
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
      deleted: this.#deleted.size,
      changes: this.#owed.length,
      lists: this.#lists,
      unavailable: this.#counts.get(503) ?? 0,
      doubtful: this.#doubts.size,
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

function microTimeNow(): string {
  return new Date().toISOString().replace('Z', '000Z')
}
