/**
 * What was printed of runs of events that do not change, to be sent again as it is: most of a long list
 * is the same from one time to the next.
 *
 * Bounded by bytes. What is full stays full of what is in use: a list longer than all of it would
 * otherwise push out each run just before it comes round again. What is not used goes after a while, for
 * which there is one timer as long as anything is kept.
 */
import { type Clock, monotonicClock } from '../lib/clock.ts'
import type { EventRun } from '../storage/storage.ts'
import type { AnswerForm } from './answer-form.ts'

const bytesMaxUsual = 32 * 1024 * 1024
/** What nobody asked for in this time gives way. */
const idleMsMax = 60_000
/** The same for what no list but the one that made it has asked for. */
const unprovenMsMax = 5_000
/** How often that is looked for. */
const sweepEveryMs = 1_000

interface Entry {
  readonly form: AnswerForm
  readonly run: EventRun
  readonly bytes: Buffer
  usedAtMs: number
  /** How often it was wanted, not counting to be measured. More than once is by several lists. */
  uses: number
}

export class KeptEntries {
  readonly #bytesMax: number
  readonly #clock: Clock
  readonly #entries = new Set<Entry>()
  /** Of each form in which the run was seen; undefined while it is not kept. */
  readonly #byRun = new WeakMap<EventRun, Map<AnswerForm, Entry | undefined>>()
  #bytes = 0
  #finds = 0
  #sweptAtMs = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(options: { readonly bytesMax?: number; readonly clock?: Clock } = {}) {
    this.#bytesMax = options.bytesMax ?? bytesMaxUsual
    this.#clock = options.clock ?? monotonicClock
  }

  /** All that is kept. */
  get bytes(): number {
    return this.#bytes
  }

  /** How often something was found. */
  get finds(): number {
    return this.#finds
  }

  /** The entries of the run in this form, as they were added. */
  find(form: AnswerForm, run: EventRun): Buffer | undefined {
    const entry = this.#byRun.get(run)?.get(form)
    if (entry === undefined) return undefined
    entry.usedAtMs = this.#clock.now()
    entry.uses += 1
    this.#finds += 1
    return entry.bytes
  }

  /**
   * Copies the entries if there is room and the run was seen before in this form. In one that is
   * measured they are needed again at once, to be sent: those are kept the first time.
   */
  add(form: AnswerForm, run: EventRun, printed: Uint8Array): void {
    const forms = this.#formsOf(run)
    const isKeptAtOnce = form.isMeasured === true
    if (!isKeptAtOnce && !forms.has(form)) {
      forms.set(form, undefined)
      return
    }
    if (run.isPast || forms.get(form) !== undefined) return
    if (!this.#hasRoomFor(printed.length)) return
    const bytes = Buffer.allocUnsafeSlow(printed.length)
    bytes.set(printed)
    // What was measured is wanted once more by its own list.
    const uses = isKeptAtOnce ? 0 : 2
    const entry = { form, run, bytes, usedAtMs: this.#clock.now(), uses }
    forms.set(form, entry)
    this.#entries.add(entry)
    this.#bytes += bytes.length
    this.#timer ??= setInterval(() => this.#age(), idleMsMax).unref()
  }

  #age(): void {
    this.#sweep(this.#clock.now())
    if (this.#entries.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #formsOf(run: EventRun): Map<AnswerForm, Entry | undefined> {
    const known = this.#byRun.get(run)
    if (known !== undefined) return known
    const forms = new Map<AnswerForm, Entry | undefined>()
    this.#byRun.set(run, forms)
    return forms
  }

  #hasRoomFor(length: number): boolean {
    if (this.#bytes + length <= this.#bytesMax) return true
    const now = this.#clock.now()
    if (now - this.#sweptAtMs < sweepEveryMs) return false
    this.#sweep(now)
    return this.#bytes + length <= this.#bytesMax
  }

  #sweep(now: number): void {
    this.#sweptAtMs = now
    for (const entry of this.#entries) {
      const idleMs = now - entry.usedAtMs
      const isIdle = idleMs > (entry.uses > 1 ? idleMsMax : unprovenMsMax)
      if (entry.run.isPast || isIdle) this.#drop(entry)
    }
  }

  #drop(entry: Entry): void {
    this.#entries.delete(entry)
    this.#bytes -= entry.bytes.length
    this.#byRun.get(entry.run)?.set(entry.form, undefined)
  }
}
