import type { StatusError } from '../api/status.ts'
import type { WatchForms } from '../codec/event-forms.ts'
import type { WatchForm } from '../codec/watch-form.ts'
import { tellingOf } from '../registry/watching.ts'
import { frameOf, framesOf, joined } from '../storage/frames.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventSelector, StoredEvent, WatchBatch } from '../storage/storage.ts'

/** A watch that failed on its way may be begun again elsewhere, or here a little later. */
const againAfterSeconds = 2
const lasting: ReadonlySet<string> = new Set(['Expired', 'Unauthorized', 'Forbidden'])

/** Tells one watcher, in its form and through its selector. */
export class Teller {
  readonly #forms: WatchForms
  readonly #selector: EventSelector | undefined
  /** A table's columns are told with the first frame only. */
  #hasBegun = false

  constructor(forms: WatchForms, selector: EventSelector | undefined) {
    this.#forms = forms
    this.#selector = selector
    this.#hasBegun = forms.first === forms.next
  }

  /** In pieces that are made one by one, as they are taken. */
  tell(batch: WatchBatch): Iterable<Buffer> {
    const { next } = this.#forms
    if (this.#selector === undefined && this.#hasBegun) return framesOf(batch, next.natural)
    return joined(this.#frames(batch))
  }

  present(events: readonly StoredEvent[]): Iterable<Buffer> {
    return joined(this.#presented(events))
  }

  bookmark(version: Version, isInitialEnd: boolean): Buffer {
    return this.#form().bookmark(version, isInitialEnd)
  }

  /**
   * What passes says when to come back. An expired version never does, nor does access that is over:
   * the watcher lists anew, and is answered then.
   */
  error(status: StatusError): Buffer {
    const told = status.status()
    if (lasting.has(told.reason ?? '')) return this.#forms.next.error(told)
    const details = { ...told.details, retryAfterSeconds: againAfterSeconds }
    return this.#forms.next.error({ ...told, details })
  }

  *#frames({ items }: WatchBatch): Generator<Buffer> {
    for (const item of items) {
      const telling = tellingOf(item, this.#selector)
      if (telling !== undefined) yield frameOf(item, this.#form()[telling])
    }
  }

  *#presented(events: readonly StoredEvent[]): Generator<Buffer> {
    for (const event of events) yield this.#form().present(event)
  }

  #form(): WatchForm {
    if (this.#hasBegun) return this.#forms.next
    this.#hasBegun = true
    return this.#forms.first
  }
}
