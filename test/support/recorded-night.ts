/**
 * A night in a cluster, from a seed, as a list of what happened and when. In `shop`, the pods of the
 * Deployment `checkout` crash-loop from 01:00 until about 03:00; at 02:10 a node runs out of disk
 * space and evicts a pod of `media`; at 02:30 the Deployment `web` of `shop` is rolled out. The rest
 * is routine from the evening before until the end: CronJobs, leader elections, autoscalers.
 */
import { Random } from './random.ts'
import type { Happening, Subject } from './recorder-styles.ts'

/** What a recorder makes one event of: the same note of the same controller about the same object. */
export interface NightEvent extends Omit<Happening, 'firstMs' | 'repeated'> {
  /** When it happened, in order. */
  readonly times: readonly number[]
}

export interface Night {
  readonly sinceMs: number
  readonly untilMs: number
  /** By when they happened first. */
  readonly events: readonly NightEvent[]
}

export interface NightOptions {
  readonly seed: number
  /** How often something of the routine happens. */
  readonly noise: number
  /** The night ends at the last 06:00 before this time. */
  readonly nowMs: number
}

const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** From 21:00 until 06:00. */
const NIGHT_HOURS = 9

export function recordedNight({ seed, noise, nowMs }: NightOptions): Night {
  const today = Math.floor(nowMs / DAY_MS) * DAY_MS
  const untilMs = today + 6 * HOUR_MS - (today + 6 * HOUR_MS > nowMs ? DAY_MS : 0)
  const sinceMs = untilMs - NIGHT_HOURS * HOUR_MS
  const at = (clock: string): number => {
    const [hours = 0, minutes = 0] = clock.split(':').map(Number)
    return untilMs - 6 * HOUR_MS + hours * HOUR_MS + minutes * MINUTE_MS
  }
  const random = new Random(seed)
  const log = new Log()
  const night = new Actors(log, random.fork())
  routine(night, { noise, sinceMs, untilMs })
  for (let pod = 0; pod < CRASHING_PODS; pod++) {
    const delayMs = random.between(5 * SECOND_MS, 40 * SECOND_MS)
    const endMs = at('03:00') - random.between(0, 2 * MINUTE_MS)
    night.crashLoop(CHECKOUT, { fromMs: at('01:00') + delayMs, endMs })
  }
  night.evict(THUMBNAILS, at('02:10'))
  night.rollOut(WEB, at('02:30'))
  return { sinceMs, untilMs, events: log.events() }
}

/** One count for each name in each bucket. */
export type Buckets = readonly ReadonlyMap<string, number>[]

/** What a histogram of the night has to show: how often each name occurred in each bucket. */
export function trueHistogram(
  events: readonly Pick<NightEvent, 'type' | 'reason' | 'times'>[],
  { bounds, by }: { readonly bounds: readonly number[]; readonly by: 'type' | 'reason' },
): Buckets {
  const occurrences = events.flatMap((event) => event.times.map((ms) => ({ ms, name: event[by] })))
  return bounds.slice(1).map((end, index) => {
    const start = bounds[index] ?? 0
    const counts = new Map<string, number>()
    for (const { ms, name } of occurrences) {
      if (ms >= start && ms < end) counts.set(name, (counts.get(name) ?? 0) + 1)
    }
    return counts
  })
}

/** The bounds of buckets of five minutes. */
export function fiveMinutes({ sinceMs, untilMs }: Pick<Night, 'sinceMs' | 'untilMs'>): number[] {
  const count = (untilMs - sinceMs) / (5 * MINUTE_MS)
  return Array.from({ length: count + 1 }, (_, index) => sinceMs + index * 5 * MINUTE_MS)
}

/** Collects what happens. Repetitions become one event, as recorders do it. */
class Log {
  readonly #events = new Map<string, { readonly what: What; readonly times: number[] }>()
  /** How often anything happened. */
  size = 0

  add(what: What, ms: number): void {
    const id = JSON.stringify(what)
    const known = this.#events.get(id)
    if (known === undefined) this.#events.set(id, { what, times: [Math.floor(ms)] })
    else known.times.push(Math.floor(ms))
    this.size++
  }

  events(): readonly NightEvent[] {
    return [...this.#events.values()]
      .map(({ what, times }) => ({ ...what, times: times.toSorted((one, other) => one - other) }))
      .sort(({ times: [one = 0] }, { times: [other = 0] }) => one - other)
  }
}

type What = Omit<NightEvent, 'times'>

interface Deployment {
  readonly namespace: string
  readonly name: string
  readonly hash: string
  readonly image: string
}

const CHECKOUT: Deployment = {
  namespace: 'shop',
  name: 'checkout',
  hash: '6c8b9d7f45',
  image: 'registry.example/shop/checkout:4.2.1',
}
const CRASHING_PODS = 3
const WEB: Deployment = {
  namespace: 'shop',
  name: 'web',
  hash: '5d9c7b8f6d',
  image: 'registry.example/shop/web:2.15.0',
}
const WEB_HASH_BEFORE = '7d9f8b6c5'
const WEB_PODS = 3
const THUMBNAILS: Deployment = {
  namespace: 'media',
  name: 'thumbnails',
  hash: '86bd5c9f4',
  image: 'registry.example/media/thumbnails:1.8.2',
}
const FULL_NODE = 'node-4'
const NODES = ['node-1', 'node-2', 'node-3', FULL_NODE, 'node-5'] as const

const CRON_JOBS = ['invoices', 'mail-queue', 'sitemap', 'stock-sync'] as const
const EVENTS_OF_RUN = 8
const AUTOSCALED: readonly Deployment[] = (
  [
    ['media', 'resize', '7f6b8d9c54'],
    ['payments', 'gateway', '6bd7c94f8'],
    ['payments', 'ledger', '58f9bc6d7'],
    ['platform', 'ingress', 'c7d84b9f6'],
    ['search', 'api', '9b8f5d6c47'],
    ['search', 'indexer', '4d7f9c8b65'],
    ['shop', 'cart', '85c9d7b6f'],
    ['shop', 'catalog', 'f6b97d8c5'],
  ] as const
).map(([namespace, name, hash]) => ({
  namespace,
  name,
  hash,
  image: `registry.example/${namespace}/${name}:3.1.0`,
}))
const EVENTS_OF_SCALING = 11
const LEASES = ['cert-manager-controller', 'external-dns', 'kube-scheduler'] as const
const ELECTIONS_SHARE = 0.025
/** The most that CronJobs have of the routine. They run every minute if there is enough of it. */
const CRON_SHARE_MAX = 0.88
/** Nothing begins so shortly before the end that it would end after it. */
const LAST_MS = 10 * MINUTE_MS

/** Exactly so many events: of CronJobs first, then elections, the rest of autoscalers. */
function routine(
  actors: Actors,
  { noise, sinceMs, untilMs }: Pick<NightOptions, 'noise'> & Pick<Night, 'sinceMs' | 'untilMs'>,
): void {
  const lengthMs = untilMs - sinceMs - LAST_MS
  const minutes = lengthMs / MINUTE_MS
  const runs = minutes * CRON_JOBS.length * EVENTS_OF_RUN
  const everyMinutes = Math.ceil(runs / (noise * CRON_SHARE_MAX))
  let left = noise
  for (let minute = 0; minute < minutes; minute += everyMinutes) {
    const minuteMs = sinceMs + minute * MINUTE_MS
    for (const cronJob of CRON_JOBS) left -= actors.runJob(cronJob, minuteMs, left)
  }
  const elections = Math.floor(noise * ELECTIONS_SHARE)
  const scalings = Math.ceil((left - elections) / EVENTS_OF_SCALING)
  const times = (count: number): readonly number[] =>
    Array.from({ length: count }, (_, index) => sinceMs + (lengthMs * index) / count)
  for (const [index, atMs] of times(elections).entries()) {
    left -= actors.elect(LEASES[index % LEASES.length] ?? LEASES[0], atMs, left)
  }
  for (const [index, atMs] of times(scalings).entries()) {
    const deployment = AUTOSCALED[index % AUTOSCALED.length]
    if (deployment !== undefined) left -= actors.scale(deployment, atMs, left)
  }
}

interface Step {
  readonly what: What
  /** After the one before. */
  readonly afterMs: number
}

/** What controllers and kubelets report. */
class Actors {
  readonly #log: Log
  readonly #random: Random
  #uids = 0

  constructor(log: Log, random: Random) {
    this.#log = log
    this.#random = random
  }

  /** A run of a CronJob, cut to `most` events; returns how many there were. */
  runJob(cronJob: string, minuteMs: number, most: number): number {
    const namespace = 'batch'
    const jobName = `${cronJob}-${minuteMs / MINUTE_MS}`
    const owner = { ...named('CronJob', namespace, cronJob), apiVersion: 'batch/v1' }
    const job = { ...this.#new('Job', namespace, jobName), apiVersion: 'batch/v1' }
    const pod = this.#pod(namespace, jobName)
    const image = `registry.example/batch/${cronJob}:1.0.3`
    return this.#play(minuteMs + this.#random.between(0, SECOND_MS), most, [
      normal(owner, 'cronjob-controller', 'SuccessfulCreate', `Created job ${jobName}`),
      normal(job, 'job-controller', 'SuccessfulCreate', `Created pod: ${pod.name}`),
      ...this.#started(pod, { image, container: cronJob, isPulled: false }),
      slow(normal(job, 'job-controller', 'Completed', 'Job completed'), 12),
      normal(
        owner,
        'cronjob-controller',
        'SawCompletedJob',
        `Saw completed job: ${jobName}, condition: Complete`,
      ),
    ])
  }

  elect(lease: string, atMs: number, most: number): number {
    const about = {
      ...named('Lease', 'kube-system', lease),
      apiVersion: 'coordination.k8s.io/v1',
    }
    const note = `${lease}-${this.#suffix()}_${this.#uid()} became leader`
    return this.#play(atMs, most, [normal(about, lease, 'LeaderElection', note)])
  }

  /** An autoscaler adds a pod, and removes it some minutes later. */
  scale(deployment: Deployment, atMs: number, most: number): number {
    const { namespace, name, hash, image } = deployment
    const owner = { ...named('Deployment', namespace, name), apiVersion: 'apps/v1' }
    const set = { ...named('ReplicaSet', namespace, `${name}-${hash}`), apiVersion: 'apps/v1' }
    const scaler = {
      ...named('HorizontalPodAutoscaler', namespace, name),
      apiVersion: 'autoscaling/v2',
    }
    const pod = this.#pod(namespace, set.name)
    const rescaled = (size: number, cause: string): Step =>
      normal(
        scaler,
        'horizontal-pod-autoscaler',
        'SuccessfulRescale',
        `New size: ${size}; reason: ${cause}`,
      )
    const scaled = (note: string): Step =>
      normal(owner, 'deployment-controller', 'ScalingReplicaSet', note)
    return this.#play(atMs, most, [
      rescaled(4, 'cpu resource utilization (percentage of request) above target'),
      scaled(`Scaled up replica set ${set.name} from 3 to 4`),
      normal(set, 'replicaset-controller', 'SuccessfulCreate', `Created pod: ${pod.name}`),
      ...this.#started(pod, { image, container: name, isPulled: false }),
      slow(rescaled(3, 'All metrics below target'), 7 * 60),
      scaled(`Scaled down replica set ${set.name} from 4 to 3`),
      normal(set, 'replicaset-controller', 'SuccessfulDelete', `Deleted pod: ${pod.name}`),
      this.#killing(pod, name),
    ])
  }

  /**
   * A container that exits soon after each start. The kubelet waits 10 seconds, then twice as long
   * each time, up to five minutes, and reports the waiting about every 13 seconds.
   */
  crashLoop(
    { namespace, name, hash, image }: Deployment,
    { fromMs, endMs }: { readonly fromMs: number; readonly endMs: number },
  ): void {
    const random = this.#random
    const pod = this.#pod(namespace, `${name}-${hash}`)
    const address = `10.0.${1 + random.below(5)}.${2 + random.below(250)}`
    const waiting = this.#ofPod(pod, name, {
      type: 'Warning',
      reason: 'BackOff',
      note: `Back-off restarting failed container ${name} in pod ${pod.name}_${namespace}(${pod.uid})`,
    })
    const unready = this.#ofPod(pod, name, {
      type: 'Warning',
      reason: 'Unhealthy',
      note: `Readiness probe failed: Get "http://${address}:8080/ready": dial tcp ${address}:8080: connect: connection refused`,
    })
    let delayMs = 10 * SECOND_MS
    for (let startMs = fromMs; startMs < endMs; ) {
      const exitMs = startMs + random.between(5 * SECOND_MS, 8 * SECOND_MS)
      for (const [index, { what }] of this.#runs(pod, name, image).entries()) {
        this.#log.add(what, startMs + index * 200)
      }
      this.#log.add(unready, startMs + 3 * SECOND_MS)
      const nextMs = exitMs + delayMs
      for (let ms = exitMs + SECOND_MS; ms < Math.min(nextMs, endMs); ) {
        this.#log.add(waiting, ms)
        ms += random.between(11.5 * SECOND_MS, 15.5 * SECOND_MS)
      }
      startMs = nextMs
      delayMs = Math.min(2 * delayMs, 5 * MINUTE_MS)
    }
  }

  /** A node runs out of disk space: its kubelet evicts a pod, which is replaced elsewhere. */
  evict({ namespace, name, hash, image }: Deployment, atMs: number): void {
    const set = { ...named('ReplicaSet', namespace, `${name}-${hash}`), apiVersion: 'apps/v1' }
    const node = { ...named('Node', '', FULL_NODE), uid: FULL_NODE }
    const pod = { ...this.#pod(namespace, set.name), node: FULL_NODE }
    const successor = { ...this.#pod(namespace, set.name), node: 'node-5' }
    const byKubelet = { by: 'kubelet', host: FULL_NODE } as const
    const status = (reason: string): Step =>
      fast({
        about: node,
        type: 'Normal',
        reason,
        note: `Node ${FULL_NODE} status is now: ${reason}`,
        ...byKubelet,
      })
    this.#play(atMs, Number.POSITIVE_INFINITY, [
      fast({
        about: node,
        type: 'Warning',
        reason: 'EvictionThresholdMet',
        note: 'Attempting to reclaim ephemeral-storage',
        ...byKubelet,
      }),
      status('NodeHasDiskPressure'),
      fast({
        about: subjectOf(pod),
        type: 'Warning',
        reason: 'Evicted',
        note:
          'The node was low on resource: ephemeral-storage. Threshold quantity: 2Gi, available: 1743Mi. ' +
          `Container ${name} was using 6210Mi, request is 0, has larger consumption of ephemeral-storage. `,
        ...byKubelet,
      }),
      this.#killing(pod, name),
      normal(set, 'replicaset-controller', 'SuccessfulCreate', `Created pod: ${successor.name}`),
      ...this.#started(successor, { image, container: name, isPulled: true }),
      slow(status('NodeHasNoDiskPressure'), 6 * 60),
    ])
  }

  /** A new version, pod by pod. */
  rollOut({ namespace, name, hash, image }: Deployment, atMs: number): void {
    const owner = { ...named('Deployment', namespace, name), apiVersion: 'apps/v1' }
    const [set, old] = [hash, WEB_HASH_BEFORE].map((one) => ({
      ...named('ReplicaSet', namespace, `${name}-${one}`),
      apiVersion: 'apps/v1',
    }))
    if (set === undefined || old === undefined) return
    const scaled = (note: string): Step =>
      normal(owner, 'deployment-controller', 'ScalingReplicaSet', note)
    for (let index = 0; index < WEB_PODS; index++) {
      const [pod, gone] = [this.#pod(namespace, set.name), this.#pod(namespace, old.name)]
      const left = WEB_PODS - index
      this.#play(atMs + index * 25 * SECOND_MS, Number.POSITIVE_INFINITY, [
        scaled(`Scaled up replica set ${set.name} from ${index} to ${index + 1}`),
        normal(set, 'replicaset-controller', 'SuccessfulCreate', `Created pod: ${pod.name}`),
        ...this.#started(pod, { image, container: name, isPulled: true }),
        slow(scaled(`Scaled down replica set ${old.name} from ${left} to ${left - 1}`), 10),
        normal(old, 'replicaset-controller', 'SuccessfulDelete', `Deleted pod: ${gone.name}`),
        this.#killing(gone, name),
      ])
    }
  }

  #started(
    pod: Pod,
    { image, container, isPulled }: { image: string; container: string; isPulled: boolean },
  ): readonly Step[] {
    const assigned = `Successfully assigned ${pod.namespace}/${pod.name} to ${pod.node}`
    const scheduled = normal(subjectOf(pod), 'default-scheduler', 'Scheduled', assigned)
    const [present, ...run] = this.#runs(pod, container, image)
    if (present === undefined || !isPulled)
      return [scheduled, ...(present ? [present] : []), ...run]
    const took = `${1 + this.#random.below(5)}.${this.#random.below(999)}s`
    const note = `Successfully pulled image "${image}" in ${took} (${took} including waiting). Image size: 48213045 bytes.`
    return [scheduled, slow({ ...present, what: { ...present.what, note } }, 4), ...run]
  }

  #runs(pod: Pod, container: string, image: string): readonly Step[] {
    const events = [
      ['Pulled', `Container image "${image}" already present on machine`],
      ['Created', `Created container: ${container}`],
      ['Started', `Started container ${container}`],
    ] as const
    return events.map(([reason, note]) =>
      fast(this.#ofPod(pod, container, { type: 'Normal', reason, note })),
    )
  }

  #killing(pod: Pod, container: string): Step {
    const note = `Stopping container ${container}`
    return fast(this.#ofPod(pod, container, { type: 'Normal', reason: 'Killing', note }))
  }

  /** From the kubelet, about a container of the pod. */
  #ofPod(pod: Pod, container: string, what: Pick<What, 'type' | 'reason' | 'note'>): What {
    return {
      about: subjectOf(pod),
      ...what,
      by: 'kubelet',
      host: pod.node,
      fieldPath: `spec.containers{${container}}`,
    }
  }

  #play(atMs: number, most: number, steps: readonly Step[]): number {
    let ms = atMs
    const played = steps.slice(0, most)
    for (const { what, afterMs } of played) {
      ms += afterMs * this.#random.between(0.8, 1.2)
      this.#log.add(what, ms)
    }
    return played.length
  }

  #pod(namespace: string, owner: string): Pod {
    const subject = this.#new('Pod', namespace, `${owner}-${this.#suffix()}`)
    return { ...subject, node: this.#random.pick(NODES) }
  }

  #new(kind: string, namespace: string, name: string): Subject {
    return { kind, apiVersion: 'v1', namespace, name, uid: this.#uid() }
  }

  /** Five characters, as the controllers of Kubernetes append them. */
  #suffix(): string {
    const safe = 'bcdfghjklmnpqrstvwxz2456789'
    return Array.from({ length: 5 }, () => safe[this.#random.below(safe.length)]).join('')
  }

  #uid(): string {
    const hex = (length: number): string =>
      Array.from({ length }, () => this.#random.below(16).toString(16)).join('')
    return `${hex(8)}-${hex(4)}-4${hex(3)}-9${hex(3)}-${(this.#uids++).toString(16).padStart(12, '0')}`
  }
}

interface Pod extends Subject {
  readonly node: string
}

/** An object that was there before the night. */
function named(kind: string, namespace: string, name: string): Subject {
  return {
    kind,
    apiVersion: 'v1',
    namespace,
    name,
    uid: `${kind}-${namespace}-${name}`.toLowerCase(),
  }
}

function subjectOf({ kind, apiVersion, namespace, name, uid }: Pod): Subject {
  return { kind, apiVersion, namespace, name, uid }
}

function normal(about: Subject, by: string, reason: string, note: string): Step {
  return fast({ about, type: 'Normal', reason, note, by })
}

function fast(what: What): Step {
  return { what, afterMs: 250 }
}

function slow(step: Step, seconds: number): Step {
  return { ...step, afterMs: seconds * SECOND_MS }
}
