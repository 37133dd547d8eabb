/**
 * The memory of a replica under a steady load: a number of events, held by a retention budget, that
 * many creates a second and as many evictions, and watchers, one in twenty of everything and the
 * others of one namespace each.
 */
import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { benchEvent } from '../../../bench/memory/events.ts'
import { DevCredentials } from '../../../src/dev/credentials.ts'
import { smallLog } from '../../../src/dev/dev.ts'
import { etcdBinary, startEtcd } from '../../support/etcd.ts'
import { Tidings } from '../../support/tidings.ts'
import { type Container, groupPeakBytes } from './container.ts'
import { type CountedWatch, Sessions } from './counted-watch.ts'

export interface SteadyLoad {
  readonly events: number
  readonly watchers: number
  readonly perSecond: number
  readonly seconds: number
  readonly sampleSeconds: number
  readonly flags: readonly string[]
  /** Replaces the options of the chart. */
  readonly nodeOptions?: string | undefined
  readonly container?: Container | undefined
  readonly say: (line: string) => void
}

export interface SteadyReport {
  /** Resident memory at each sample under load, in MiB. */
  readonly rssMib: readonly number[]
  /** The most that it ever was. */
  readonly peakMib: number
  readonly created: number
  /** Watchers that missed a create, or have another number of deletes than others of their scope. */
  readonly incomplete: number
  /** Watches that ended, and why. */
  readonly ended: readonly string[]
}

const built = join(import.meta.dirname, '../../../dist/main.js')
const NAMESPACES = 20
/** One watcher in this many watches everything. */
const OF_EVERYTHING = 20
/** One user may store only a part of what a small memory limit leaves for events. */
const WRITERS = 8
const SEEDING_AT_ONCE = 64
/** The rate falls on a busy machine: recorders wait for responses, too. */
const CREATES_AT_ONCE = 100
const TICK_MS = 20
const SETTLE_MS_MAX = 60_000
/** The settings of the chart and the systemd unit, and of the launcher and the image. */
const MALLOC = { MALLOC_ARENA_MAX: '1' }
const NODE_OPTIONS = '--max-old-space-size=512 --max-semi-space-size=8'
/** Statuses of a server on a busy machine; 409: an earlier attempt was applied. */
const LATER = new Set([429, 503, 504])

export async function steadyLoad(load: SteadyLoad): Promise<SteadyReport> {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-memory-'))
  try {
    await using etcd = await startEtcd({ args: await smallLog(etcdBinary) })
    const policy = join(folder, 'retention.yaml')
    await writeFile(policy, policyOf(load.events))
    const { token, tokenFile } = await DevCredentials.create(folder)
    const writers = Array.from({ length: WRITERS }, (_, n) => `writer-${n}-${token}`)
    const lines = writers.map((one, n) => `${one},writer-${n},writer-${n},system:masters\n`)
    await appendFile(tokenFile, lines.join(''))
    const program = [process.execPath, built]
    await using server = await Tidings.start(
      [
        `--etcd-servers=${etcd.endpoints[0]}`,
        `--token-auth-file=${tokenFile}`,
        `--retention-policy-file=${policy}`,
        '--max-write-bytes-per-second=0',
        '--max-watch-duration=4h',
        '--etcd-compaction-interval=1m',
        ...load.flags,
      ],
      { NODE_OPTIONS: load.nodeOptions ?? NODE_OPTIONS, ...MALLOC },
      load.container?.command(program) ?? program,
    )
    await server.until('/readyz', ({ status }) => status === 200, 30_000)
    const { port, ca } = server
    using writing = new Sessions({ port, ca, tokens: writers })
    const tokens = new Array<string>(8).fill(token)
    const watching = (): Sessions => new Sessions({ port, ca, tokens })
    return await new Run(load, { server, writing, watching }).run()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

interface RunParts {
  readonly server: Tidings
  readonly writing: Sessions
  /** Opened when it is needed: the server closes idle connections. */
  readonly watching: () => Sessions
}

interface Watcher {
  /** Undefined: everything. */
  readonly namespace: number | undefined
  readonly watch: CountedWatch
}

class Run {
  readonly #load: SteadyLoad
  readonly #parts: RunParts
  readonly #createdIn = new Array<number>(NAMESPACES).fill(0)
  readonly #rssMib: number[] = []
  #next = 0

  constructor(load: SteadyLoad, parts: RunParts) {
    this.#load = load
    this.#parts = parts
  }

  async run(): Promise<SteadyReport> {
    await this.#sample('started')
    await this.#seed()
    await this.#sample('seeded')
    this.#createdIn.fill(0)
    using watching = this.#parts.watching()
    const watchers = await this.#openWatches(watching)
    const created = await this.#createSteadily()
    const incomplete = await this.#incomplete(watchers)
    const { peakMib } = await this.#sample('ended')
    const ended = watchers.flatMap(({ watch }) => watch.ended ?? [])
    return { rssMib: this.#rssMib, peakMib, created, incomplete, ended }
  }

  async #seed(): Promise<void> {
    const one = async (): Promise<void> => {
      while (this.#next < this.#load.events) await this.#create(this.#next++)
    }
    await Promise.all(Array.from({ length: SEEDING_AT_ONCE }, one))
  }

  async #create(n: number): Promise<void> {
    const namespace = n % NAMESPACES
    const path = `/apis/events.k8s.io/v1/namespaces/${nameOf(namespace)}/events`
    const body = bodyOf(n, nameOf(namespace))
    for (;;) {
      const status = await this.#parts.writing.post(path, body)
      if (status === 201 || status === 409) break
      if (!LATER.has(status)) throw new Error(`a create got status ${status}`)
      await sleep(100)
    }
    this.#createdIn[namespace] = (this.#createdIn[namespace] ?? 0) + 1
  }

  /** All begin at the same state. */
  async #openWatches(watching: Sessions): Promise<readonly Watcher[]> {
    const version = await watching.versionOf('/apis/events.k8s.io/v1/namespaces/empty/events')
    return Promise.all(
      Array.from({ length: this.#load.watchers }, async (_, n): Promise<Watcher> => {
        const namespace = n % OF_EVERYTHING === 0 ? undefined : n % NAMESPACES
        const scope = namespace === undefined ? '' : `/namespaces/${nameOf(namespace)}`
        const path = `/apis/events.k8s.io/v1${scope}/events?watch=1&resourceVersion=${version}`
        return { namespace, watch: await watching.watch(path) }
      }),
    )
  }

  /** Creates at a fixed rate, as far as the server keeps up. Returns how many were created. */
  async #createSteadily(): Promise<number> {
    const { seconds, perSecond, sampleSeconds, events } = this.#load
    const startedAt = performance.now()
    const underWay = new Set<Promise<void>>()
    let sampledAt = startedAt
    let failure: unknown
    for (let now = startedAt; now - startedAt < seconds * 1000; now = performance.now()) {
      const due = events + Math.floor(((now - startedAt) / 1000) * perSecond)
      while (this.#next < due && underWay.size < CREATES_AT_ONCE) {
        const sent = this.#create(this.#next++).catch((error) => {
          failure ??= error
        })
        underWay.add(sent)
        void sent.finally(() => underWay.delete(sent))
      }
      if (now - sampledAt >= sampleSeconds * 1000) {
        sampledAt = now
        const { rssMib } = await this.#sample(`${Math.round((now - startedAt) / 1000)} s`)
        this.#rssMib.push(rssMib)
      }
      if (failure !== undefined) throw failure
      await sleep(TICK_MS)
    }
    await Promise.all(underWay)
    if (failure !== undefined) throw failure
    return this.#next - events
  }

  /** Waits a limited time until all watchers have received everything. */
  async #incomplete(watchers: readonly Watcher[]): Promise<number> {
    const created = (namespace: number | undefined): number =>
      namespace === undefined
        ? this.#createdIn.reduce((sum, count) => sum + count, 0)
        : (this.#createdIn[namespace] ?? 0)
    const wrong = (): readonly Watcher[] => {
      const deletes = new Map<number | undefined, number>()
      for (const { namespace, watch } of watchers) {
        deletes.set(namespace, Math.max(deletes.get(namespace) ?? 0, watch.count('D')))
      }
      return watchers.filter(
        ({ namespace, watch }) =>
          watch.count('A') !== created(namespace) || watch.count('D') !== deletes.get(namespace),
      )
    }
    const giveUpAt = performance.now() + SETTLE_MS_MAX
    while (wrong().length > 0 && performance.now() < giveUpAt) await sleep(500)
    return wrong().length
  }

  async #sample(when: string): Promise<{ readonly rssMib: number; readonly peakMib: number }> {
    const { server } = this.#parts
    const pid = this.#load.container?.pid() ?? server.process.pid ?? 0
    const [status, stat, { body }] = await Promise.all([
      readFile(`/proc/${pid}/status`, 'utf8'),
      readFile(`/proc/${pid}/stat`, 'utf8'),
      server.ask('/metrics'),
    ])
    const mibOf = (name: string): number =>
      Math.round(Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1024)
    const metric = (name: string): number =>
      Number(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(body)?.[1])
    const mib = (name: string): number => Math.round(metric(name) / 1024 ** 2)
    const [user = 0, system = 0] = (stat.split(') ')[1] ?? '').split(' ').slice(11, 13).map(Number)
    const sample = { rssMib: mibOf('VmRSS'), peakMib: mibOf('VmHWM') }
    this.#load.say(
      `${when}: RSS ${sample.rssMib} MiB, peak ${sample.peakMib}; ` +
        `${metric('apiserver_resource_objects')} events, ${mib('tidings_memory_event_bytes')} MiB, ` +
        `history ${metric('tidings_history_changes')} changes, ${mib('tidings_history_bytes')} MiB, ` +
        `heap ${mib('nodejs_heap_size_used_bytes')} of ${mib('nodejs_heap_size_total_bytes')} MiB, ` +
        `external ${mib('nodejs_external_memory_bytes')} MiB, CPU ${(user + system) / 100} s`,
    )
    if (this.#load.container !== undefined) {
      const peak = Math.round((groupPeakBytes(pid) ?? 0) / 1024 ** 2)
      this.#load.say(`  the control group took ${peak} MiB at most, pages of files included`)
    }
    return sample
  }
}

function nameOf(namespace: number): string {
  return `team-${namespace}`
}

/** Leaves out the fields of older events, which a create may not set; the note makes up for them. */
function bodyOf(n: number, namespace: string): string {
  const { deprecatedSource, deprecatedLastTimestamp, deprecatedCount, ...event } = JSON.parse(
    benchEvent(n).body.toString(),
  )
  const metadata = { name: `${event.regarding.name}.${n.toString(16)}`, namespace }
  const regarding = { ...event.regarding, namespace }
  return JSON.stringify({ ...event, metadata, regarding, note: `${event.note} ${'.'.repeat(150)}` })
}

function policyOf(events: number): string {
  return [
    'apiVersion: tidings.dev/v1alpha1',
    'kind: RetentionPolicy',
    'budgets:',
    `  - { name: all, per: Cluster, events: ${events} }`,
    '',
  ].join('\n')
}

/** The last third may be above the middle third by this much. */
const GROWTH_MAX = 1.03
/** Two in each third. */
const SAMPLES_MIN = 6

/** What is wrong with the results; empty when nothing is. */
export function complaints(
  { rssMib, peakMib, incomplete, ended }: SteadyReport,
  { mostMib, limitMib }: { readonly mostMib: number; readonly limitMib: number },
): readonly string[] {
  const wrong: string[] = []
  if (rssMib.length < SAMPLES_MIN) {
    wrong.push(`only ${rssMib.length} samples: at least ${SAMPLES_MIN} show whether it grows`)
  }
  const highest = Math.max(...rssMib)
  if (highest > mostMib) wrong.push(`RSS was ${highest} MiB, and should be at most ${mostMib}`)
  if (limitMib > 0 && peakMib > limitMib) {
    wrong.push(`RSS was up to ${peakMib} MiB, above the limit of ${limitMib}`)
  }
  const third = Math.floor(rssMib.length / 3)
  const [middle, last] = [rssMib.slice(third, -third), rssMib.slice(-third)].map(mean)
  if (third > 0 && (last ?? 0) > (middle ?? 0) * GROWTH_MAX) {
    wrong.push(`RSS grew from ${middle} MiB in the middle third to ${last} in the last`)
  }
  if (incomplete > 0) wrong.push(`${incomplete} watchers did not receive everything`)
  if (ended.length > 0) wrong.push(`${ended.length} watches ended: ${ended[0]}`)
  return wrong
}

function mean(values: readonly number[]): number {
  return Math.round(values.reduce((sum, value) => sum + value, 0) / values.length)
}
