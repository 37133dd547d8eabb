import { after, before } from 'node:test'
import { eventsGroup } from '../../src/api/event-groups.ts'
import type { CachedStorageOptions } from '../../src/cache/cached-storage.ts'
import { EncodedRunCache } from '../../src/codec/encoders/encoded-run-cache.ts'
import type { MirroredClusters, ReadApi } from '../../src/endpoints/events/event-api.ts'
import { lateResponse, serve } from '../../src/endpoints/serve.ts'
import type { EtcdClient } from '../../src/etcd/client.ts'
import type { Handler, Response } from '../../src/http/exchange.ts'
import { type Log, silentLog } from '../../src/lib/log/log.ts'
import { RunQueue } from '../../src/lib/run-queue.ts'
import { TopSources } from '../../src/registry/top-sources.ts'
import { Totals } from '../../src/retention/account/totals.ts'
import { RetentionPolicy } from '../../src/retention/policy.ts'
import type { EtcdAvailability } from '../../src/storage/etcd/etcd-availability.ts'
import { EtcdStorage } from '../../src/storage/etcd/etcd-storage.ts'
import type { QuotaAlarm } from '../../src/storage/etcd/quota-alarm.ts'
import { uidOf } from '../../src/storage/namespace-form.ts'
import { revisionOf } from '../../src/storage/resource-version.ts'
import { CachedEventStorage } from './cached-event-storage.ts'
import { startEtcd } from './etcd.ts'
import { type EventServicesOptions, eventServices } from './event-services.ts'
import {
  startListener,
  startPlainListener,
  type TestListener,
  type TestListenerOptions,
} from './listener.ts'
import { inParallel } from './load.ts'
import { openTo } from './open-gate.ts'
import { PresentClient } from './present-client.ts'
import { Watched } from './watched.ts'
import { makeEvent } from './wire-event.ts'

const group = eventsGroup('events.k8s.io')
const base = `/apis/${group.apiVersion}`
/** The server's default. */
const callTimeoutMsDefault = 10_000
export const token = 'secret'

export interface EventApiOptions
  extends Pick<CachedStorageOptions, 'historyBounds' | 'memoryBounds'> {
  /** The timeout of a read from etcd. */
  readonly callTimeoutMs?: number
  /** Gets the messages about an unavailable or full etcd. */
  readonly availabilityLog?: Log
  readonly mirrored?: MirroredClusters
  /** The wall clock of requests. */
  readonly now?: () => number
  /** What retention windows tell of the archive. By default, nothing is archived. */
  readonly archived?: EventServicesOptions['archived']
  /** By default, access is never revoked. */
  readonly accessChecks?: ReadApi['accessChecks']
}

export interface Call {
  /** The cluster in the path; none by default. */
  readonly cluster?: string
  readonly method?: string
  /** The path after `namespaces/`: `demo`, `demo/name`; empty for all namespaces. */
  readonly at: string
  /** Instead of `at`: the whole path in the cluster. */
  readonly path?: string
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly headers?: Readonly<Record<string, string>>
  /** A value that is not a string is sent as JSON. */
  readonly body?: unknown
  readonly signal?: AbortSignal
}

export interface Answered {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read responses of every kind.
  readonly json: any
}

/**
 * Everything between a request and etcd, in this process: the handler and the engine as the server
 * builds them. For `await using`.
 */
export class EventApiUnderTest implements AsyncDisposable {
  readonly handler: Handler
  readonly storage: CachedEventStorage
  /** The cache of encoded runs of lists. */
  readonly runCache: EncodedRunCache = new EncodedRunCache()
  /** What retention windows tell of the policy and of the account. */
  readonly kept: { policy: RetentionPolicy; readonly totals: Totals } = {
    policy: RetentionPolicy.uniform(3_600_000),
    totals: new Totals(),
  }
  /** Rates of summaries. */
  readonly sources: TopSources = new TopSources()
  readonly client: EtcdClient
  readonly availability: EtcdAvailability
  readonly quotaAlarm: QuotaAlarm
  readonly #etcd: PresentClient
  readonly #written: EtcdStorage
  readonly #end = new AbortController()
  readonly #running: Promise<void>

  /** Resolves when the cache is filled. */
  static async start(
    endpoints: readonly string[],
    options: EventApiOptions = {},
  ): Promise<EventApiUnderTest> {
    const api = new EventApiUnderTest(endpoints, options)
    await api.storage.synced
    return api
  }

  private constructor(endpoints: readonly string[], options: EventApiOptions) {
    const {
      callTimeoutMs = callTimeoutMsDefault,
      availabilityLog,
      mirrored,
      now,
      accessChecks,
      archived,
      ...cacheOptions
    } = options
    this.#etcd = new PresentClient({ endpoints, defaultTimeoutMs: callTimeoutMs }, availabilityLog)
    this.client = this.#etcd.client
    this.availability = this.#etcd.availability
    this.quotaAlarm = this.#etcd.quotaAlarm
    this.#written = new EtcdStorage({
      client: this.client,
      availability: this.availability,
      quotaAlarm: this.quotaAlarm,
      prefix: '/registry',
      onCorrupt: (key) => {
        throw new Error(`not an event: ${key}`)
      },
    })
    this.storage = new CachedEventStorage({ inner: this.#written, log: silentLog, ...cacheOptions })
    this.#running = this.storage.run(this.#end.signal)
    const user = { name: 'tester', groups: [] }
    const { storage, runCache, sources, kept } = this
    this.handler = serve({
      runQueue: new RunQueue(),
      services: eventServices({
        storage,
        group,
        runCache,
        sources,
        mirrored,
        kept,
        archived,
        now,
        accessChecks,
      }),
      ...openTo(user),
      log: silentLog,
      clusterName: 'local',
      isTurningAway: () => false,
    })
  }

  async ask(call: Call): Promise<Response> {
    const { method = 'GET', query = {}, headers = {}, body, signal } = call
    const bytes = bodyBytes(body)
    return this.handler({
      method,
      path:
        (call.cluster === undefined ? '' : `/clusters/${call.cluster}`) +
        (call.path ?? pathOf(call.at)),
      query: queryOf(query),
      headers: {
        authorization: `Bearer ${token}`,
        ...(bytes.length > 0 ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      peer: { address: '127.0.0.1', isLoopback: true, clientCertificate: () => undefined },
      signal: signal ?? new AbortController().signal,
      body: async () => bytes,
    })
  }

  /** The complete response. */
  async call(call: Call): Promise<Answered> {
    const { status, headers, body } = await this.ask(call)
    const text = await textOf(body)
    const isJson = text.startsWith('{') && headers['content-type']?.includes('json') === true
    return { status, headers, text, json: isJson ? JSON.parse(text) : undefined }
  }

  /** A watch, read in the background from now on. */
  async watch(
    at: string,
    query: Call['query'] = {},
    call: Pick<Call, 'cluster' | 'headers' | 'path'> = {},
  ): Promise<Watched> {
    const end = new AbortController()
    const { signal } = end
    const response = await this.ask({ ...call, at, query: { watch: true, ...query }, signal })
    return new Watched(response, end)
  }

  /** A watch of all changes after this call, however late it begins. */
  async watchFromNow(at: string): Promise<Watched> {
    const { json } = await this.call({ at, query: { limit: 1 } })
    return this.watch(at, { resourceVersion: json.metadata.resourceVersion })
  }

  /** Creates many events at once, past the API: `e-000000` and so on. */
  async fill(
    namespace: string,
    count: number,
    fieldsOf: (index: number) => Parameters<typeof makeEvent>[2] = () => ({}),
  ): Promise<void> {
    await inParallel(count, 1_000, async (index) => {
      const name = `e-${String(index).padStart(6, '0')}`
      const made = makeEvent(namespace, name, fieldsOf(index))
      const { kind: _kind, apiVersion: _version, metadata: sent, ...event } = made
      const uid = uidOf(`${namespace}/${name}`)
      const metadata = { ...sent, uid, creationTimestamp: '2026-01-01T00:00:00Z' }
      // Members have their stored order: the metadata comes first.
      const body = Buffer.from(JSON.stringify({ metadata, ...event }))
      await this.storage.create({ cluster: 'local', namespace, name }, body)
    })
  }

  listen(options?: TestListenerOptions): Promise<TestListener> {
    return startListener(this.handler, { lateResponse, ...options })
  }

  listenPlain(options?: Omit<TestListenerOptions, 'tls'>): Promise<TestListener> {
    return startPlainListener(this.handler, { lateResponse, ...options })
  }

  /** Compacts etcd to its current revision. */
  async compact(): Promise<void> {
    const { signal } = new AbortController()
    await this.client.compact(revisionOf(await this.storage.currentVersion({ signal })))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort()
    await this.#running
    await this.#written.close()
    this.#etcd.close()
  }
}

/** Starts the API on its own etcd. */
async function startEventApi(
  options?: EventApiOptions,
): Promise<{ readonly api: EventApiUnderTest } & AsyncDisposable> {
  const etcd = await startEtcd()
  const api = await EventApiUnderTest.start(etcd.endpoints, options)
  return {
    api,
    [Symbol.asyncDispose]: async () => {
      await api[Symbol.asyncDispose]()
      await etcd[Symbol.asyncDispose]()
    },
  }
}

/** An API for all tests of the suite that calls this; `end` is called before it is closed. */
export function withEventApi(suite: {
  readonly options?: EventApiOptions
  begin(api: EventApiUnderTest): void | Promise<void>
  end?(): Promise<void>
}): void {
  let running: Awaited<ReturnType<typeof startEventApi>>
  before(async () => {
    running = await startEventApi(suite.options)
    await suite.begin(running.api)
  })
  after(async () => {
    await suite.end?.()
    await running[Symbol.asyncDispose]()
  })
}

/** The path of a call, for tests that use a connection. */
export function pathOf(at: string): string {
  if (at === '') return `${base}/events`
  const [namespace, name] = at.split('/')
  const collection = `${base}/namespaces/${namespace}/events`
  return name === undefined ? collection : `${collection}/${name}`
}

async function textOf(body: Response['body']): Promise<string> {
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return Buffer.from(body).toString()
  const chunks: Buffer[] = []
  for await (const chunk of body) chunks.push(Buffer.from(chunk))
  return Buffer.concat(chunks).toString()
}

function queryOf(query: NonNullable<Call['query']>): URLSearchParams {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) params.append(name, String(value))
  return params
}

function bodyBytes(body: unknown): Buffer {
  if (body === undefined) return Buffer.alloc(0)
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}
