import { pause } from '../../../src/lib/abort.ts'
import { eventually } from '../../support/eventually.ts'
import { WrongClock } from '../../support/wrong-clock.ts'
import { type ClockedReplica, PREFIX, Site } from './site.ts'
import { AgeWatcher, type Verdict } from './watcher.ts'

/** What is wrong with the clock of one replica of three, and what else happens. */
export interface ClockCase {
  /** The final error of the clock, or its speed. */
  readonly offset: string
  /** How the clock becomes wrong: before the start, by a jump, or gradually. */
  readonly manner: 'start' | 'jump' | 'drift'
  /** What the replica with the wrong clock does at that time: sweep, or only serve writes. */
  readonly role: 'sweeper' | 'writer'
  readonly kill: 'none' | 'sweeper' | 'all'
  /** The monotonic clock is wrong too. */
  readonly fakesMonotonic?: true
}

export interface CaseTimes {
  readonly ttlMs: number
  /** How long events are written. */
  readonly writeMs: number
  /** How early an event may be deleted. */
  readonly earlyMsMax: number
}

export interface CaseResult extends Verdict {
  /** How often the replica with the wrong clock became the sweeper. */
  readonly wrongTerms: number
  /** How many lines all replicas logged about clocks. */
  readonly warnings: number
  /** Violations. */
  readonly wrong: readonly string[]
}

const LATE_MS_MAX = 60_000
/** How long all replicas are down when all are killed. */
const DOWN_MS = 6_000
const WRITE_EVERY_MS = 400

export async function runCase(clockCase: ClockCase, times: CaseTimes): Promise<CaseResult> {
  const { offset, manner, role, kill, fakesMonotonic = false } = clockCase
  const { ttlMs, writeMs, earlyMsMax } = times
  await using site = await Site.start([`--event-ttl=${ttlMs}ms`])
  await using clock = await WrongClock.make(manner === 'start' ? offset : '+0s', { fakesMonotonic })
  const faulty = site.replica(clock)
  const others = [site.replica(), site.replica()]
  const all = [faulty, ...others]
  const inOrder = role === 'sweeper' ? all : all.toReversed()
  const [first] = inOrder
  await first?.start()
  await eventually('the first replica sweeps', () => first?.isSweeping === true, 60_000)
  await Promise.all(inOrder.slice(1).map((replica) => replica.start()))
  await using watcher = new AgeWatcher(site.etcd.endpoints, PREFIX, ttlMs)

  const stop = new AbortController()
  const writing = write(all, stop.signal)
  await pause(writeMs / 4)
  if (manner !== 'start') await clock.set(offset)
  await pause(writeMs / 4)
  if (kill === 'sweeper') await killSweeper(all)
  if (kill === 'all') await killAll(inOrder, () => watcher.backUp())
  await pause(writeMs / 2)
  stop.abort()
  await writing
  await eventually(
    'all events are deleted, or overdue',
    () => watcher.verdict().left === 0 || watcher.verdict().lateMs > LATE_MS_MAX,
    ttlMs + LATE_MS_MAX + 30_000,
  )
  const verdict = watcher.verdict()
  const wrongTerms = faulty.terms
  const warnings = all.reduce((sum, replica) => sum + replica.warnings.length, 0)
  const wrong = [
    ...(verdict.earlyMs > earlyMsMax ? ['an event was deleted early'] : []),
    ...(verdict.lateMs > LATE_MS_MAX ? ['an event stayed'] : []),
    ...(verdict.written < writeMs / WRITE_EVERY_MS / 4 ? ['too little was written'] : []),
    ...(role === 'sweeper' && wrongTerms === 0 ? ['the wrong clock never swept'] : []),
  ]
  return { ...verdict, wrongTerms, warnings, wrong }
}

/** Creates events through each running replica, and updates every fifth a little later. */
async function write(replicas: readonly ClockedReplica[], signal: AbortSignal): Promise<void> {
  for (let round = 0; !signal.aborted; round++) {
    const running = replicas.filter((replica) => replica.isRunning)
    await Promise.all(
      running.map((replica, at) =>
        round % 5 === 4
          ? replica.touch(`e-${round - 4}-${at}`)
          : replica.create(`e-${round}-${at}`),
      ),
    )
    await pause(WRITE_EVERY_MS, signal)
  }
}

async function killSweeper(replicas: readonly ClockedReplica[]): Promise<void> {
  const sweeper = replicas.find((replica) => replica.isSweeping)
  await sweeper?.kill()
  const next = () => replicas.some((replica) => replica.isSweeping)
  await eventually('another one sweeps', next, 60_000)
  await sweeper?.start()
}

/** The first one is started first, so that it leads again. */
async function killAll(inOrder: readonly ClockedReplica[], onUp: () => void): Promise<void> {
  await Promise.all(inOrder.map((replica) => replica.kill()))
  await pause(DOWN_MS)
  const [first, ...rest] = inOrder
  await first?.start()
  await eventually('the first replica sweeps', () => first?.isSweeping === true, 60_000)
  onUp()
  await Promise.all(rest.map((replica) => replica.start()))
}
