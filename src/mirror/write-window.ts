/**
 * The writes of one stream that are in progress. Bounds their number and bytes, keeps the writes of
 * each event in order, repeats failed writes, and tracks up to which version of the origin everything
 * is stored: writes end in any order, and the position is before the first that has not ended.
 */
import { AbortListener, pause } from '../lib/abort.ts'
import { Backoff } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { PerKeyQueue } from '../lib/per-key-queue.ts'
import type { WriteResult } from '../registry/mirrored-event.ts'
import { compareResourceVersions, isResourceVersion } from '../registry/origin-version.ts'
import { StorageError } from '../storage/errors.ts'

const entriesMaxDefault = 256
const bytesMaxDefault = 4 * 1024 * 1024
const retryFirstMs = 100
const retryMostMs = 10_000

export interface WriteWindowOptions {
  readonly position: string | undefined
  /** On abort, unfinished writes are given up; the position stays before them. */
  readonly signal: AbortSignal
  readonly clock: Clock
  readonly onResult: (result: WriteResult) => void
  readonly onRetry: (error: StorageError) => void
  /**
   * Called when a write failed and must not be repeated, such as one that is fenced. Must abort the
   * signal. Still called for each fenced write after that.
   */
  readonly onFailure: (error: unknown) => void
  readonly entriesMax?: number | undefined
  readonly bytesMax?: (() => number) | undefined
}

export interface Write {
  /** Writes with the same key are applied one after the other. */
  readonly key: string
  /** The position once everything up to this write is stored; undefined for items of a list. */
  readonly version: string | undefined
  readonly bytes: number
  /** Must be repeatable. */
  readonly apply: () => Promise<WriteResult>
}

interface Entry {
  version: string | undefined
  readonly bytes: number
  readonly arrivedAt: number
  hasEnded: boolean
}

export class WriteWindow {
  readonly #options: WriteWindowOptions
  readonly #entriesMax: number
  readonly #bytesMax: () => number
  /** FIFO, starting with the first that has not ended. */
  readonly #entries: Entry[] = []
  readonly #keys = new PerKeyQueue<undefined>()
  #bytes = 0
  #position: string | undefined
  #onChange: (() => void) | undefined

  constructor(options: WriteWindowOptions) {
    this.#options = options
    this.#position = options.position
    this.#entriesMax = options.entriesMax ?? entriesMaxDefault
    this.#bytesMax = options.bytesMax ?? (() => bytesMaxDefault)
    new AbortListener(options.signal, () => this.#onChange?.())
  }

  /** Everything at the origin up to this version is stored. */
  get position(): string | undefined {
    return this.#position
  }

  get pending(): number {
    return this.#entries.length
  }

  /** When the oldest write in progress arrived. */
  get oldestAt(): number | undefined {
    return this.#entries[0]?.arrivedAt
  }

  /** Waits until the window has space and starts the write. Does nothing once aborted. */
  async add(write: Write): Promise<void> {
    await this.#until(
      () =>
        this.#entries.length === 0 ||
        (this.#entries.length < this.#entriesMax && this.#bytes + write.bytes <= this.#bytesMax()),
    )
    if (this.#options.signal.aborted) return
    const entry = this.#append(write.version, write.bytes)
    void this.#run(write, entry)
  }

  /** Records that everything up to this version has arrived. */
  mark(version: string): void {
    const last = this.#entries.at(-1)
    // Many marks behind one write in progress need one entry.
    if (last?.hasEnded === true) last.version = newer(last.version, version)
    else this.#append(version, 0).hasEnded = true
    this.#advance()
  }

  /** Resolves when all writes have ended, or the signal is aborted. */
  async drained(): Promise<void> {
    await this.#until(() => this.#entries.length === 0)
  }

  /** Sets the position after a list; it may be lower than before. */
  restart(position: string): void {
    this.#position = position
  }

  #append(version: string | undefined, bytes: number): Entry {
    const arrivedAt = this.#options.clock.now()
    const entry = { version, bytes, arrivedAt, hasEnded: false }
    this.#entries.push(entry)
    this.#bytes += bytes
    return entry
  }

  /** Only one caller, the stream, may wait at a time. */
  async #until(isReached: () => boolean): Promise<void> {
    while (!this.#options.signal.aborted) {
      if (isReached()) return
      await new Promise<void>((resolve) => {
        this.#onChange = resolve
      })
      this.#onChange = undefined
    }
  }

  async #run(write: Write, entry: Entry): Promise<void> {
    const { signal, onResult, onFailure } = this.#options
    await this.#keys.enter(write.key)
    try {
      const result = await this.#applied(write)
      if (result === undefined || signal.aborted) return
      onResult(result)
      entry.hasEnded = true
      this.#advance()
    } catch (error) {
      onFailure(error)
    } finally {
      this.#keys.leave(write.key, undefined)
    }
  }

  /** Repeats the write until it has a result. Undefined when aborted. */
  async #applied({ apply }: Write): Promise<WriteResult | undefined> {
    const { signal, onRetry } = this.#options
    const backoff = new Backoff({ firstMs: retryFirstMs, mostMs: retryMostMs })
    while (!signal.aborted) {
      try {
        return await apply()
      } catch (error) {
        const isFenced = error instanceof StorageError && error.kind === 'fenced'
        if (isFenced || (!signal.aborted && !(error instanceof StorageError))) throw error
        if (signal.aborted || !(error instanceof StorageError)) return undefined
        onRetry(error)
        await pause(Math.max(error.retryAfterMs ?? 0, backoff.next()), signal)
      }
    }
    return undefined
  }

  #advance(): void {
    let ended = 0
    for (const entry of this.#entries) {
      if (!entry.hasEnded) break
      ended++
      this.#bytes -= entry.bytes
      if (entry.version !== undefined) this.#moveTo(entry.version)
    }
    if (ended === 0) return
    this.#entries.splice(0, ended)
    this.#onChange?.()
  }

  /** Never moves back: a watch may deliver a change twice. */
  #moveTo(version: string): void {
    this.#position = newer(this.#position, version)
  }
}

/** Ignores a string that is not a version. */
function newer(one: string | undefined, other: string): string | undefined {
  if (!isResourceVersion(other)) return one
  return one === undefined || compareResourceVersions(one, other) < 0 ? other : one
}
