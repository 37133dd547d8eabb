/**
 * A simulated operating-system process: its clocks, its timers, its random numbers, and whether it
 * runs, is stopped or has ended.
 *
 * The code of a process runs only through `runAs`, which makes it the current process; see
 * interception.ts. Before `runAs` returns, all microtasks have run too, so that a continuation never
 * runs as another process.
 */
import { Random } from '../../support/random.ts'
import { runAs } from './current.ts'
import type { Entry, Scheduler } from './scheduler.ts'
import { SimulatedTimer } from './timer.ts'

/** The true wall time of a world. */
export interface WallTime {
  /** When the world begins. */
  readonly startMs: number
  /** 1, or more if days are to pass in minutes. */
  readonly rate: number
}

/** From 1 January 2026 on, an arbitrary date. */
export const usualWallTime: WallTime = { startMs: 1_767_225_600_000, rate: 1 }
const timerMsMost = 2 ** 31 - 1

export interface ProcessOptions {
  readonly name: string
  readonly pid: number
  readonly scheduler: Scheduler
  readonly seed: number
  /** How fast its monotonic clock runs: 1.01 gains one second in 100. */
  readonly rate: number
  /** How far its wall clock is ahead of true time. */
  readonly wallOffsetMs: number
  readonly wall?: WallTime | undefined
}

export class SimulatedProcess {
  readonly name: string
  readonly pid: number
  readonly random: Random
  /** Its files, by their paths. */
  readonly files: Map<string, Buffer> = new Map()
  readonly #scheduler: Scheduler
  readonly #rate: number
  readonly #wall: WallTime
  #wallOffsetMs: number
  readonly #startedAt: number
  #state: 'running' | 'stopped' | 'ended' = 'running'
  /** While it is stopped: what became due, timers and messages apart. */
  #dueTimers: (() => void)[] = []
  #dueMessages: (() => void)[] = []
  /** What was due before it was stopped, and had to wait because it was busy. */
  #dueBefore: (() => void)[] = []
  /** A process under load: each event, and each reading of the clock, takes this long. */
  loadMs = 0
  #spentMs = 0
  #busyUntil = 0
  #suspendedMs = 0
  #suspendedAt: number | undefined

  constructor(options: ProcessOptions) {
    this.name = options.name
    this.pid = options.pid
    this.random = new Random(options.seed)
    this.#scheduler = options.scheduler
    this.#rate = options.rate
    this.#wall = options.wall ?? usualWallTime
    this.#wallOffsetMs = options.wallOffsetMs
    this.#startedAt = options.scheduler.now
  }

  get startedAt(): number {
    return this.#startedAt
  }

  get isRunning(): boolean {
    return this.#state === 'running'
  }

  /** What `performance.now()` returns. */
  monotonicMs(): number {
    const awakeMs = this.#scheduler.now - this.#startedAt - this.#suspendedMs
    const elapsed = awakeMs * this.#rate
    if (this.loadMs === 0) return elapsed
    // Code that works until its time slice is over must see time pass.
    this.#spentMs += this.loadMs
    return elapsed + this.#spentMs
  }

  /** What `Date.now()` returns. */
  wallMs(): number {
    const { startMs, rate } = this.#wall
    return Math.floor(startMs + this.#scheduler.now * rate + this.#wallOffsetMs)
  }

  /** Sets the wall clock, as an operator or NTP does. */
  jump(ms: number): void {
    this.#wallOffsetMs += ms
  }

  /** SIGSTOP: nothing of the process runs until `resume`. Its clocks go on. */
  stop(): void {
    if (this.#state === 'running') this.#state = 'stopped'
  }

  /** The machine is suspended: as `stop`, but the monotonic clock and the timers stand still. */
  suspend(): void {
    if (this.#state !== 'running') return
    this.#state = 'stopped'
    this.#suspendedAt = this.#scheduler.now
  }

  /** SIGCONT: the event loop runs due timers first, then reads its sockets. */
  resume(): void {
    if (this.#state !== 'stopped') return
    this.#state = 'running'
    if (this.#suspendedAt !== undefined) {
      this.#suspendedMs += this.#scheduler.now - this.#suspendedAt
      this.#suspendedAt = undefined
    }
    const due = [...this.#dueBefore, ...this.#dueTimers, ...this.#dueMessages]
    this.#dueBefore = []
    this.#dueTimers = []
    this.#dueMessages = []
    for (const run of due) this.#scheduler.at(this.#scheduler.now, () => this.#message(run))
  }

  /** SIGKILL: nothing of the process runs any more. */
  end(): void {
    this.#state = 'ended'
    this.#dueBefore = []
    this.#dueTimers = []
    this.#dueMessages = []
  }

  /** Runs work as this process after `ms` of true time: a message from the network. */
  after(ms: number, work: () => void): Entry {
    return this.at(this.#scheduler.now + ms, work)
  }

  /** Runs work as this process at a point of true time. */
  at(time: number, work: () => void): Entry {
    return this.#scheduler.at(time, () => this.#message(work))
  }

  /** Runs work as this process now, if it runs; otherwise when it does. */
  #message(work: () => void): void {
    if (this.#state === 'ended') return
    if (this.#state === 'stopped') {
      this.#dueMessages.push(work)
      return
    }
    this.#run(work)
  }

  #run(work: () => void): void {
    const { now } = this.#scheduler
    if (this.#busyUntil > now) {
      this.#scheduler.at(this.#busyUntil, () => this.#wasBusy(work))
      return
    }
    this.#spentMs = this.loadMs
    runAs(this, work)
    if (this.#spentMs > 0) this.#busyUntil = now + this.#spentMs / this.#rate
  }

  /** If it is stopped by now, this still comes before all that became due while it was stopped. */
  #wasBusy(work: () => void): void {
    if (this.#state === 'stopped') this.#dueBefore.push(work)
    else this.#message(work)
  }

  setTimeout(work: () => void, ms: number): SimulatedTimer {
    const timer = new SimulatedTimer(this, work, undefined)
    this.#arm(timer, timerMs(ms))
    return timer
  }

  setInterval(work: () => void, ms: number): SimulatedTimer {
    const everyMs = timerMs(ms)
    const timer = new SimulatedTimer(this, work, everyMs)
    this.#arm(timer, everyMs)
    return timer
  }

  setImmediate(work: () => void): SimulatedTimer {
    const timer = new SimulatedTimer(this, work, undefined)
    timer.entry = this.#scheduler.at(this.#scheduler.now, () => this.#message(timer.fire))
    return timer
  }

  clear(timer: SimulatedTimer): void {
    timer.cancel()
    if (timer.entry !== undefined) this.#scheduler.cancel(timer.entry)
  }

  #arm(timer: SimulatedTimer, ms: number): void {
    const at = this.#scheduler.now + ms / this.#rate
    timer.suspendedMs = this.#suspendedMs
    timer.entry = this.#scheduler.at(at, () => this.#fire(timer))
  }

  #fire(timer: SimulatedTimer): void {
    if (this.#state === 'ended') return
    const missedMs = this.#suspendedMs - timer.suspendedMs
    if (missedMs > 0) {
      this.#arm(timer, missedMs * this.#rate)
      return
    }
    if (this.#suspendedAt !== undefined) {
      const restMs = (this.#scheduler.now - this.#suspendedAt) * this.#rate
      this.#dueTimers.push(() => this.#arm(timer, restMs))
      return
    }
    const { everyMs } = timer
    // A timer that is due many times while the process is stopped fires once.
    const rearm = () => {
      timer.fire()
      if (everyMs !== undefined && !timer.isCancelled) this.#arm(timer, everyMs)
    }
    const run = everyMs === undefined ? timer.fire : rearm
    if (this.#state === 'stopped') this.#dueTimers.push(run)
    else this.#run(run)
  }
}

/** Rounds like Node: whole milliseconds, and 1 ms for a number below 1 or out of range. */
function timerMs(ms: number): number {
  const whole = Math.trunc(ms)
  return whole >= 1 && whole <= timerMsMost ? whole : 1
}
