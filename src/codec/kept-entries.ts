/**
 * What was printed of runs of events that do not change, to be sent again as it is: most of a long list
 * is the same from one time to the next.
 *
 * Bounded by bytes. What is full stays full of what is in use: a list longer than all of it would
 * otherwise push out each run just before it comes round again.
 */
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { EventRun } from '../storage/storage.ts'
import type { AnswerForm } from './answer-form.ts'

const bytesMaxUsual = 32 * 1024 * 1024
/** What nobody asked for in this time gives way. */
const idleMsMax = 60_000
/** How often that is looked for. */
const sweepEveryMs = 1_000

interface Entry {
  readonly form: AnswerForm
  readonly run: EventRun
  readonly bytes: Buffer
  usedAtMs: number
}

export class KeptEntries {
  readonly #bytesMax: number
  readonly #clock: Clock
  readonly #entries = new Set<Entry>()
  /** Those of a run, one for each form; none yet for one that has been seen once. */
  readonly #byRun = new WeakMap<EventRun, Entry[]>()
  #bytes = 0
  #sweptAtMs = Number.NEGATIVE_INFINITY

  constructor(options: { readonly bytesMax?: number; readonly clock?: Clock } = {}) {
    this.#bytesMax = options.bytesMax ?? bytesMaxUsual
    this.#clock = options.clock ?? monotonicClock
  }

  /** All that is kept. */
  get bytes(): number {
    return this.#bytes
  }

  /** The entries of the run in this form, as they were added. */
  find(form: AnswerForm, run: EventRun): Buffer | undefined {
    const entry = this.#byRun.get(run)?.find((one) => one.form === form)
    if (entry === undefined) return undefined
    entry.usedAtMs = this.#clock.now()
    return entry.bytes
  }

  /** Copies the entries, if the run was seen before and there is room. */
  add(form: AnswerForm, run: EventRun, printed: Uint8Array): void {
    const entries = this.#byRun.get(run)
    if (entries === undefined) {
      this.#byRun.set(run, [])
      return
    }
    if (run.isPast || entries.some((one) => one.form === form)) return
    if (!this.#hasRoomFor(printed.length)) return
    const bytes = Buffer.allocUnsafeSlow(printed.length)
    bytes.set(printed)
    const entry = { form, run, bytes, usedAtMs: this.#clock.now() }
    entries.push(entry)
    this.#entries.add(entry)
    this.#bytes += bytes.length
  }

  #hasRoomFor(length: number): boolean {
    if (this.#bytes + length <= this.#bytesMax) return true
    const now = this.#clock.now()
    if (now - this.#sweptAtMs < sweepEveryMs) return false
    this.#sweptAtMs = now
    for (const entry of this.#entries) {
      if (entry.run.isPast || now - entry.usedAtMs > idleMsMax) this.#drop(entry)
    }
    return this.#bytes + length <= this.#bytesMax
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry)
    this.#bytes -= entry.bytes.length
    const entries = this.#byRun.get(entry.run)
    entries?.splice(entries.indexOf(entry), 1)
  }
}
