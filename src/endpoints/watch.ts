import { StatusError } from '../api/status.ts'
import type { WatchForms } from '../codec/event-forms.ts'
import type { WatchForm } from '../codec/watch-form.ts'
import { tellingOf, watchFailure } from '../registry/watching.ts'
import { frameOf, framesOf, joined } from '../storage/frames.ts'
import type { Version } from '../storage/resource-version.ts'
import type { EventSelector, StoredEvent, WatchBatch } from '../storage/storage.ts'
import type { Endpoint, EventApi } from './event-api.ts'
import { readOptions, type WatchPlan, watchPlan } from './list-query.ts'
import { negotiateWatch } from './negotiate.ts'

/** How often a watcher who asked for it is told how far it has come. */
const bookmarkEveryMs = 60_000
/** Events read at once of those that are told first: a client that does not read keeps them here. */
const presentItems = 20
/** A watch that failed on its way may be begun again elsewhere, or here a little later. */
const againAfterSeconds = 2

/**
 * GET …/events?watch=true, and the older paths under …/watch/
 *
 * The answer begins at once and has no end of its own: what goes wrong later is told in a last
 * frame. Changes are taken when the client has room for them, and not before.
 */
export function watchEvents(api: EventApi): Endpoint {
  return async (request, path) => {
    const forms = api.forms.watch(negotiateWatch(request))
    const plan = watchPlan(path, readOptions(request.query, path, api.group))
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>()
    const body = async function* (): AsyncGenerator<Buffer> {
      using end = new WatchEnd(request.signal, plan.lifetimeMs)
      const teller = new Teller(forms, plan.selector)
      yield* frames(api, plan, { teller, signal: end.signal, settle })
    }
    return {
      status: 200,
      headers: { 'content-type': forms.first.contentType },
      body: body(),
      longRunning: true,
      settled,
    }
  }
}

interface Telling {
  readonly teller: Teller
  readonly signal: AbortSignal
  /** Called when the beginning is made, and only changes are waited for. */
  readonly settle: () => void
}

async function* frames(api: EventApi, plan: WatchPlan, telling: Telling): AsyncGenerator<Buffer> {
  const { teller, signal } = telling
  try {
    let { from } = plan
    if (plan.initial !== undefined) {
      const listing = await api.lister.list({ ...plan.initial, pieceItems: presentItems, signal })
      for await (const events of listing.pieces) {
        for (const piece of teller.present(events)) yield piece
      }
      if (plan.hasInitialBookmark) yield teller.bookmark(listing.version, true)
      from = listing.version
    }
    from ??= await api.storage.currentVersion({ signal })
    telling.settle()
    yield* changes(api, plan, { ...telling, from })
  } catch (error) {
    if (signal.aborted) return
    const status = error instanceof StatusError ? error : watchFailure(error, api.registry.names)
    if (status === undefined) throw error
    yield teller.error(status)
  }
}

async function* changes(
  api: EventApi,
  { scope, hasBookmarks }: WatchPlan,
  { teller, signal, from }: Telling & { readonly from: Version },
): AsyncGenerator<Buffer> {
  const watch = api.storage.watch(scope, { from, signal })
  let isBookmarkDue = false
  const timer = hasBookmarks
    ? setInterval(() => {
        isBookmarkDue = true
        watch.requestProgress()
      }, bookmarkEveryMs)
    : undefined
  try {
    for await (const batch of watch) {
      for (const piece of teller.tell(batch)) yield piece
      if (!isBookmarkDue) continue
      isBookmarkDue = false
      yield teller.bookmark(batch.version, false)
    }
  } finally {
    clearInterval(timer)
  }
}

/** Tells one watcher, in its form and through its selector. */
class Teller {
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

  /** What passes says when to come back. An expired version never does: the watcher lists anew. */
  error(status: StatusError): Buffer {
    const told = status.status()
    if (told.reason === 'Expired') return this.#forms.next.error(told)
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

/** Timers cannot wait longer than this. */
const timerMsMax = 2 ** 31 - 1

/** Aborts with the request, or when the watch's own time is over. */
class WatchEnd implements Disposable {
  readonly #controller = new AbortController()
  readonly #request: AbortSignal
  readonly #timer: NodeJS.Timeout

  constructor(request: AbortSignal, lifetimeMs: number) {
    this.#request = request
    this.#timer = setTimeout(this.#end, Math.min(lifetimeMs, timerMsMax))
    if (request.aborted) this.#end()
    else request.addEventListener('abort', this.#end)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#request.removeEventListener('abort', this.#end)
  }

  readonly #end = (): void => this.#controller.abort()
}
