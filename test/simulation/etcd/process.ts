/** The process of one member: its timers and incoming messages wait while it is stopped. */
import type { MemberWorld } from './contract.ts'

export class MemberProcess {
  readonly world: MemberWorld
  isUp = true
  isPaused = false
  /** Counts the starts: what was scheduled before a crash never runs. */
  #incarnation = 0
  #deferred: (() => void)[] = []

  constructor(world: MemberWorld) {
    this.world = world
  }

  /** Whether it runs: up and not stopped. */
  get isRunning(): boolean {
    return this.isUp && !this.isPaused
  }

  /** Runs now; when the process is stopped, as soon as it continues. */
  run(work: () => void): void {
    if (!this.isUp) return
    if (this.isPaused) this.#deferred.push(work)
    else work()
  }

  /** Runs later, unless the process has crashed by then. */
  after(ms: number, work: () => void): void {
    const incarnation = this.#incarnation
    this.world.after(ms, () => {
      if (incarnation === this.#incarnation) this.run(work)
    })
  }

  /** The same, for work that may be cancelled. */
  timer(ms: number, work: () => void): () => void {
    let isActive = true
    const incarnation = this.#incarnation
    const cancel = this.world.after(ms, () => {
      if (incarnation !== this.#incarnation) return
      this.run(() => {
        if (!isActive) return
        isActive = false
        work()
      })
    })
    return () => {
      isActive = false
      cancel()
    }
  }

  crash(): void {
    this.isUp = false
    this.isPaused = false
    this.#incarnation++
    this.#deferred = []
  }

  start(): void {
    this.isUp = true
  }

  pause(): void {
    if (this.isUp) this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
    // Work may stop the process again, or crash it.
    const deferred = this.#deferred
    this.#deferred = []
    for (const work of deferred) this.run(work)
  }
}
