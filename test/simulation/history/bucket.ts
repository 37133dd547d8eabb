/**
 * The store of the archive: objects in memory, as all replicas see them, and what is wrong with it now. A request
 * takes effect when it arrives, whether its process is still there or not.
 */
import { hash } from 'node:crypto'
import type { StoreErrorKind } from '../../../src/history/store/object-store.ts'
import type { Random } from '../../support/random.ts'
import type { Scheduler } from '../kernel/scheduler.ts'

export interface StoredObject {
  readonly bytes: Buffer
  readonly sha256: string
  /** By the clock of the store, which is right. */
  readonly modifiedAtMs: number
}

export interface BucketOptions {
  readonly scheduler: Scheduler
  readonly random: Random
  /** The true wall time. */
  readonly wallMs: () => number
  /** Before an object is deleted or replaced. */
  readonly onChange: (name: string, next: Buffer | undefined) => void
}

/** How a request ends: with a result, or with a failure of the store. */
export type Answer<Result> =
  | { readonly result: Result }
  | { readonly failure: StoreErrorKind; readonly message: string }

export interface BucketRequest<Result> {
  readonly replica: number
  readonly isPut: boolean
  /** Its effect. `lie`: it is not what the answer says. */
  apply(lie: Lie | undefined): Answer<Result>
  /** A request that fails may have left something. */
  applyPart?(): void
  /** Called at the time of the answer; not at all if it is lost. */
  answer(answer: Answer<Result>): void
}

/** What the store does with a put that it reports as a success. */
export type Lie = 'loses' | 'truncates' | 'garbles'

const usualMs = { least: 0.5, most: 8 }

export class Bucket {
  readonly #options: BucketOptions
  readonly #objects = new Map<string, StoredObject>()
  /** Requests that arrived while the store was stopped. */
  #held: (() => void)[] = []
  readonly #cutOff = new Set<number>()
  #isStopped = false
  /** Every request is refused with it. */
  refusal: { readonly share: number; readonly kind: StoreErrorKind } | undefined
  /** Puts that fail since there is no room. */
  isFull = false
  /** What happens to the next puts. */
  lies: Lie[] = []
  latencyMs: { readonly least: number; readonly most: number } = usualMs

  constructor(options: BucketOptions) {
    this.#options = options
  }

  get(name: string): StoredObject | undefined {
    return this.#objects.get(name)
  }

  /** Sorted. */
  names(prefix: string): readonly string[] {
    return [...this.#objects.keys()].filter((name) => name.startsWith(prefix)).sort()
  }

  put(name: string, bytes: Buffer): void {
    this.#options.onChange(name, bytes)
    const modifiedAtMs = this.#options.wallMs()
    this.#objects.set(name, { bytes, sha256: hash('sha256', bytes), modifiedAtMs })
  }

  delete(name: string): void {
    if (!this.#objects.has(name)) return
    this.#options.onChange(name, undefined)
    this.#objects.delete(name)
  }

  /** Runs work that belongs to no process of a replica. */
  after(ms: number, work: () => void): void {
    const { scheduler } = this.#options
    scheduler.at(scheduler.now + ms, work)
  }

  // ---- requests

  send<Result>(request: BucketRequest<Result>): void {
    this.after(this.#delayMs(), () => this.#arrive(request))
  }

  #arrive<Result>(request: BucketRequest<Result>): void {
    if (this.#cutOff.has(request.replica)) return
    if (this.#isStopped) {
      this.#held.push(() => this.#arrive(request))
      return
    }
    const answer = this.#handled(request)
    this.after(this.#delayMs(), () => {
      if (!this.#cutOff.has(request.replica)) request.answer(answer)
    })
  }

  #handled<Result>(request: BucketRequest<Result>): Answer<Result> {
    const { random } = this.#options
    const { refusal } = this
    if (refusal !== undefined && random.chance(refusal.share)) {
      const kind = random.below(3)
      if (kind === 0) request.applyPart?.()
      // A request whose answer got lost has had its effect.
      if (kind === 1) request.apply(undefined)
      return { failure: refusal.kind, message: 'the store refuses the request' }
    }
    if (request.isPut && this.isFull) {
      if (random.chance(0.5)) request.applyPart?.()
      return { failure: 'full', message: 'the store has no room' }
    }
    return request.apply(request.isPut ? this.lies.shift() : undefined)
  }

  #delayMs(): number {
    const { least, most } = this.latencyMs
    return this.#options.random.between(least, most)
  }

  // ---- faults

  stop(): void {
    this.#isStopped = true
  }

  resume(): void {
    this.#isStopped = false
    const held = this.#held
    this.#held = []
    for (const arrive of held) arrive()
  }

  /** Messages between a replica and the store are lost. */
  cutOff(replica: number): void {
    this.#cutOff.add(replica)
  }

  reconnect(replica: number): void {
    this.#cutOff.delete(replica)
  }

  slow(latencyMs: Bucket['latencyMs'] = usualMs): void {
    this.latencyMs = latencyMs
  }

  heal(): void {
    this.#cutOff.clear()
    this.refusal = undefined
    this.isFull = false
    this.lies = []
    this.slow()
    this.resume()
  }
}
