import {
  GET,
  type Health,
  HealthProbe,
  LIST,
  LimitedServer,
  WRITE,
} from '../../support/limited-server.ts'
import {
  type LoadOrder,
  type LoadRequest,
  type LoadResult,
  runLoads,
} from '../../support/request-load.ts'

const FACTOR = 10

/** A crowd of clients that causes an overload. */
export interface Crowd {
  readonly name: string
  readonly protocol?: 'http1'
  readonly users: readonly string[]
  readonly requests: readonly LoadRequest[]
  /** Each HTTP/2 connection has a hundred streams. */
  readonly connections: number
}

const USERS = ['ada', 'bob', 'eve', 'joe', 'kim']
const MIXED = { users: USERS, requests: [WRITE, LIST, WRITE, GET] }

/** All requests fit into the queue. */
export const WAITING: Crowd = { name: '2,000 streams', connections: 20, ...MIXED }
/** More requests than fit into the queue: up to a third of these fit. */
export const PAST_WAITING: Crowd = { name: '10,000 streams', connections: 100, ...MIXED }
/** One user with one kind of request gets half of the queue. */
export const PAST_WAITING_HTTP1: Crowd = {
  name: '2,500 connections of HTTP/1.1',
  protocol: 'http1',
  users: ['ada'],
  requests: [LIST, GET],
  connections: 2500,
}

/** Keyed by the name on the command line. */
export const CROWDS: Readonly<Record<string, Crowd>> = {
  waiting: WAITING,
  streams: PAST_WAITING,
  http1: PAST_WAITING_HTTP1,
}

/** The deadline of a response, while the server has a core to itself. */
const DEADLINE_MS = 15_000
/** A server that gets less than a third of a core is not measured for longer. */
const STRETCH_MAX = 3
const WARM_MS = 2000
const PEAK_MS = 3000
/** The peak is the best of these. */
const PEAK_CONCURRENCY = [50, 150, 300]
const MEMORY_LOOK_MS = 500
/** The time after which memory is flat: all have connected, and each has sent requests. */
const SETTLED_MS = 10_000
const MIB = 1024 * 1024

/** The results of an overloaded server, next to its peak. */
export interface OverloadReport {
  readonly crowd: string
  /** Requests a second that it serves at the best concurrency. */
  readonly peakPerSecond: number
  readonly offeredPerSecond: number
  readonly goodputPerSecond: number
  /** Goodput divided by the peak; both by the CPU time that other programs left to the server. */
  readonly goodputRatio: number
  /** The same by wall-clock time. */
  readonly wallRatio: number
  readonly health: Health
  /** How many times slower the machine was than an idle one. */
  readonly slowness: number
  /** Ten seconds after the beginning, and at the end. */
  readonly memoryMib: { readonly early: number; readonly late: number }
  readonly isSameProcess: boolean
  readonly result: LoadResult
}

/**
 * Offers ten times the peak rate on a schedule, for as long as the server needs to have `ownMs` for
 * itself: all times are longer on a machine that is busy with other work.
 */
export async function overload(ownMs: number, crowd: Crowd): Promise<OverloadReport> {
  await using limited = await LimitedServer.start(crowd.users)
  const { server } = limited
  const common = {
    port: server.port,
    ca: server.ca,
    tokens: crowd.users,
    deadlineMs: DEADLINE_MS,
    ...(crowd.protocol === undefined ? {} : { protocol: crowd.protocol }),
  }
  const measure = (
    order: Omit<LoadOrder, keyof typeof common | 'requests'> & Partial<LoadOrder>,
    requests = crowd.requests,
  ): Promise<Measured> => measured(limited, { ...common, requests, ...order })
  const some = (concurrency: number): { connections: number; concurrency: number } => ({
    connections: crowd.protocol === 'http1' ? concurrency : 5,
    concurrency,
  })
  await measure({ id: 'fill', ...some(50), ms: WARM_MS }, [WRITE])
  await measure({ id: 'warm', ...some(100), ms: WARM_MS })
  const peaks: Measured[] = []
  for (const concurrency of PEAK_CONCURRENCY) {
    peaks.push(await measure({ id: 'peak', ...some(concurrency), ms: PEAK_MS }))
  }
  const peak = peaks.reduce((a, b) => (a.fairPerSecond > b.fairPerSecond ? a : b))
  const peakPerSecond = peak.result.ok / peak.result.seconds
  const probe = new HealthProbe(server)
  const offeredPerSecond = FACTOR * peakPerSecond
  const { connections } = crowd
  const stretch = Math.min(peak.slowness, STRETCH_MAX)
  const ms = ownMs * stretch
  const deadlineMs = DEADLINE_MS * stretch
  const memory = new MemoryLooks(limited, Math.min(SETTLED_MS, ownMs / 2) * stretch)
  const offer = { connections, perSecond: offeredPerSecond, ms, deadlineMs }
  const over = await measure({ id: 'over', ...offer })
  const health = await probe.stop()
  const goodputPerSecond = over.result.ok / over.result.seconds
  return {
    crowd: crowd.name,
    peakPerSecond,
    offeredPerSecond,
    goodputPerSecond,
    goodputRatio: over.fairPerSecond / peak.fairPerSecond,
    wallRatio: goodputPerSecond / peakPerSecond,
    health,
    slowness: over.slowness,
    memoryMib: memory.stop(),
    isSameProcess: server.process.exitCode === null && server.process.signalCode === null,
    result: over.result,
  }
}

/** Looks at the memory of the server again and again. */
class MemoryLooks {
  readonly #startedAt = performance.now()
  readonly #looks: { readonly atMs: number; readonly bytes: number }[] = []
  readonly #settledMs: number
  readonly #timer: NodeJS.Timeout

  constructor(limited: LimitedServer, settledMs: number) {
    this.#settledMs = settledMs
    this.#timer = setInterval(() => {
      limited.memoryBytes().then(
        (bytes) => this.#looks.push({ atMs: performance.now() - this.#startedAt, bytes }),
        () => {},
      )
    }, MEMORY_LOOK_MS)
  }

  /** Each is a median over a quarter of the time after the beginning. */
  stop(): OverloadReport['memoryMib'] {
    clearInterval(this.#timer)
    const settled = this.#looks
      .filter(({ atMs }) => atMs >= this.#settledMs)
      .map(({ bytes }) => bytes)
    const quarter = Math.ceil(settled.length / 4)
    return {
      early: median(settled.slice(0, quarter)) / MIB,
      late: median(settled.slice(-quarter)) / MIB,
    }
  }
}

interface Measured {
  readonly result: LoadResult
  /** Responses for each second that other programs left to the server. */
  readonly fairPerSecond: number
  readonly slowness: number
}

async function measured(limited: LimitedServer, order: LoadOrder): Promise<Measured> {
  let before = 0
  const [result] = await runLoads([order], () => {
    before = limited.starvedMs()
  })
  if (result === undefined) throw new Error('no result')
  const starvedSeconds = (limited.starvedMs() - before) / 1000
  const ownSeconds = Math.max(result.seconds - starvedSeconds, 0.1)
  return {
    result,
    fairPerSecond: result.ok / ownSeconds,
    slowness: result.seconds / ownSeconds,
  }
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

const GOODPUT_RATIO_MIN = 0.8
export const HEALTH_P99_MS_MAX = 500
/** Room for the bookkeeping of 50,000 recent changes, which their bytes do not include. */
const MEMORY_GROWTH_MIB_MAX = 96

/** What is wrong with the results; empty when nothing is. */
export function complaints(report: OverloadReport): readonly string[] {
  const { goodputRatio, health, memoryMib, result } = report
  const problems: [boolean, string][] = [
    [goodputRatio < GOODPUT_RATIO_MIN, `goodput is ${goodputRatio.toFixed(2)} of the peak`],
    [health.ownP99Ms > HEALTH_P99_MS_MAX, `health p99 is ${health.ownP99Ms.toFixed(0)} ms`],
    [health.failures > 0, `health failed ${health.failures} times`],
    [
      memoryMib.late > memoryMib.early + MEMORY_GROWTH_MIB_MAX,
      `memory grew from ${memoryMib.early.toFixed(0)} to ${memoryMib.late.toFixed(0)} MiB`,
    ],
    [!report.isSameProcess, 'the process has ended'],
    [result.refused + result.unsent < result.ok, 'too little was offered to be an overload'],
    [
      result.refusedWithoutDate > 0,
      `${result.refusedWithoutDate} responses with 429 had no valid Retry-After`,
    ],
    [result.failed > 0, `${result.failed} failed: ${JSON.stringify(result.others)}`],
  ]
  return problems.filter(([isWrong]) => isWrong).map(([, what]) => what)
}
