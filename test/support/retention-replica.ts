import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { machineClock, type WorkerConfig, type WorkerLine } from './retention-worker.ts'

const worker = fileURLToPath(new URL('retention-worker.ts', import.meta.url))

/** A period in which a replica believed to lead. */
export interface Belief {
  readonly replica: string
  readonly from: number
  to: number
}

/** A worker process that can be killed and paused. */
export class Replica {
  readonly name: string
  readonly beliefs: Belief[] = []
  readonly early: string[] = []
  swept = 0
  compactions = 0
  isPaused = false
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown>
  /** The end of its term, according to its last report. */
  #until: number | undefined

  constructor(config: WorkerConfig) {
    this.name = config.replica
    this.#child = spawn(process.execPath, [worker, JSON.stringify(config)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#exited = once(this.#child, 'exit')
    if (this.#child.stdout === null) throw new Error('the worker has no standard output')
    createInterface({ input: this.#child.stdout }).on('line', (line) =>
      this.#hear(JSON.parse(line)),
    )
  }

  get isLeader(): boolean {
    return this.#until !== undefined && machineClock.now() < this.#until
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    const killedAt = machineClock.now()
    await this.#exited
    const last = this.beliefs.at(-1)
    if (last !== undefined) last.to = Math.min(last.to, killedAt)
    this.#until = undefined
  }

  pause(): void {
    this.isPaused = true
    this.#child.kill('SIGSTOP')
  }

  resume(): void {
    this.#child.kill('SIGCONT')
    this.isPaused = false
  }

  /** Shuts the replica down; resolves to its exit code. */
  async stop(): Promise<number | null> {
    this.resume()
    this.#child.kill('SIGTERM')
    await this.#exited
    return this.#child.exitCode
  }

  #hear(line: WorkerLine): void {
    if (line.says === 'early') this.early.push(`${line.name} by ${line.byMs} ms`)
    if (line.says === 'status') {
      this.swept = line.swept
      this.compactions = line.compactions
    }
    if (line.says !== 'term') return
    const current = this.beliefs.at(-1)
    if (line.until === undefined) {
      if (this.#until !== undefined && current !== undefined) {
        current.to = Math.min(current.to, line.at)
      }
    } else if (this.#until === undefined || current === undefined) {
      this.beliefs.push({ replica: this.name, from: line.at, to: line.until })
    } else {
      current.to = line.until
    }
    this.#until = line.until
  }
}
