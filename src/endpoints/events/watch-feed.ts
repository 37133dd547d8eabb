import { StatusError } from '../../api/status.ts'
import type { AccessCheck } from '../../gate/access-checks.ts'
import { AbortListener } from '../../lib/abort.ts'
import { type Pull, Pulled } from '../../lib/pull.ts'
import type { Lane } from '../../lib/run-queue.ts'
import type { PieceSize } from '../../registry/read/list-cursor.ts'
import { watchFailure } from '../../registry/read/transitions.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { PulledWatch } from '../../storage/storage.ts'
import type { WatchPlan } from '../request/list-plan.ts'
import type { WatchGzip } from '../response/watch-gzip.ts'
import type { ReadApi } from './event-api.ts'
import type { WatchFrameWriter } from './watch-frame-writer.ts'

/** How often a watcher that requested bookmarks gets one. */
const bookmarkEveryMs = 60_000
/** Initial events read at a time. They stay in memory while the client does not read. */
const initialItems = 20
/** The same for a watch that compresses them, which takes more of them for the same bytes. */
const gzippedPiece: PieceSize = { pieceItems: 50, pieceBytes: 64 * 1024 }

export interface FeedOptions {
  readonly plan: WatchPlan
  readonly writer: WatchFrameWriter
  /** Set when the body is gzipped. */
  readonly gzip?: WatchGzip | undefined
  /** Cancels the watch. */
  readonly request: AbortSignal
  /** Called periodically to check that this user may still watch. */
  readonly access?: AccessCheck | undefined
  readonly user: string
  readonly lane: Lane
  /** Called when the initial events have been sent. */
  readonly settle: () => void
}

/**
 * The states of a watch response:
 *
 * | state     | what `take` returns              | next                                           |
 * | --------- | -------------------------------- | ---------------------------------------------- |
 * | `idle`    |                                  | `initial`, by the first `take`                 |
 * | `initial` | frames of existing events        | `changes` when all are sent; `over` on error   |
 * | `changes` | frames of changes, and bookmarks | `over` when the watch ends or fails            |
 * | `over`    | nothing                          |                                                |
 *
 * `stop` leads to `over` from every state. Revoked access and a failure send a last ERROR frame
 * before that; a watch that its client or its lifetime ended sends none.
 */
type State = { readonly kind: 'idle' } | InitialState | ChangesState | { readonly kind: 'over' }

interface InitialState {
  readonly kind: 'initial'
  /** Aborts when the watch ends. */
  readonly signal: AbortSignal
  /** Returns the version of the state that contains the events. */
  readonly frames: AsyncGenerator<Buffer, Version>
  /** The result of the last read of `frames`, until it is taken. */
  step: Step | undefined
}

interface ChangesState {
  readonly kind: 'changes'
  readonly watch: PulledWatch
  readonly bookmarks: NodeJS.Timeout | undefined
  isBookmarkDue: boolean
  /** Frames of the batch that is being sent, and the version at its end. */
  batch: { readonly frames: Iterator<Buffer>; readonly version: Version } | undefined
}

type Step = IteratorResult<Buffer, Version> | { readonly error: unknown }

/** The body of a watch response, pulled at the client's pace. */
export class WatchFeed implements AsyncIterable<Buffer>, Pull<Buffer> {
  readonly #api: ReadApi
  readonly #options: FeedOptions
  #state: State = { kind: 'idle' }
  #end: WatchEnd | undefined
  #accessCheck: Disposable | undefined
  /** Set when the user has lost access. */
  #refusal: StatusError | undefined

  constructor(api: ReadApi, options: FeedOptions) {
    this.#api = api
    this.#options = options
  }

  get isOver(): boolean {
    return this.#state.kind === 'over'
  }

  get heldBytes(): number {
    return this.#state.kind === 'changes' ? (this.#state.watch.heldBytes ?? 0) : 0
  }

  [Symbol.asyncIterator](): AsyncIterator<Buffer> {
    return new Pulled(this)
  }

  take(wake: () => void): Buffer | undefined {
    if (this.isOver) return undefined
    const piece = this.#takeOrFail(wake)
    const { gzip } = this.#options
    if (gzip === undefined || !this.isOver) return piece
    return Buffer.concat([...(piece === undefined ? [] : [piece]), gzip.end()])
  }

  #takeOrFail(wake: () => void): Buffer | undefined {
    if (this.#refusal !== undefined) return this.#takeRefusal(this.#refusal)
    try {
      return this.#take(wake)
    } catch (error) {
      this.stop()
      return this.#errorFrame(error)
    }
  }

  /** A gzipped piece is sent before the ERROR frame, since the checksum includes it. */
  #takeRefusal(refusal: StatusError): Buffer {
    const { gzip, writer } = this.#options
    const step = this.#state.kind === 'initial' ? this.#state.step : undefined
    this.stop()
    const error = this.#coded(writer.error(refusal))
    if (gzip === undefined || step === undefined || 'error' in step || step.done === true)
      return error
    return Buffer.concat([step.value, error])
  }

  stop(): void {
    const state = this.#state
    if (state.kind === 'over') return
    this.#state = { kind: 'over' }
    this.#accessCheck?.[Symbol.dispose]()
    this.#end?.[Symbol.dispose]()
    if (state.kind === 'initial') {
      // The generator is cancelled, so its result and errors are ignored.
      state.frames.return(0 as Version).catch(() => {})
    } else if (state.kind === 'changes') {
      clearInterval(state.bookmarks)
      state.watch.stop()
    }
  }

  #take(wake: () => void): Buffer | undefined {
    const state = this.#state
    switch (state.kind) {
      case 'idle':
        return this.#takeInitial(this.#begin(), wake)
      case 'initial':
        return this.#takeInitial(state, wake)
      case 'changes':
        return this.#takeChange(state, wake)
      case 'over':
        return undefined
    }
  }

  #begin(): InitialState {
    const { plan, request, access, user } = this.#options
    this.#end = new WatchEnd(request, plan.lifetimeMs)
    if (access !== undefined) {
      this.#accessCheck = this.#api.accessChecks?.add(access, this.#refuse, user)
    }
    const { signal } = this.#end
    const frames = this.#initialFrames(signal)
    const state: InitialState = { kind: 'initial', signal, frames, step: undefined }
    this.#state = state
    return state
  }

  #takeInitial(state: InitialState, wake: () => void): Buffer | undefined {
    const { step } = state
    state.step = undefined
    if (step === undefined) {
      this.#readInitial(state, wake)
      return undefined
    }
    if ('error' in step) throw step.error
    if (step.done !== true) return step.value
    const changes = this.#follow(step.value, state.signal)
    this.#options.settle()
    return this.#takeChange(changes, wake)
  }

  #readInitial(state: InitialState, wake: () => void): void {
    const onStep = (step: Step): void => {
      state.step = step
      if (!this.isOver) wake()
    }
    state.frames.next().then(onStep, (error: unknown) => onStep({ error }))
  }

  async *#initialFrames(signal: AbortSignal): AsyncGenerator<Buffer, Version> {
    const { lister, storage } = this.#api
    const { plan, writer, gzip, lane } = this.#options
    if (plan.initial === undefined) return plan.from ?? (await storage.currentVersion({ signal }))
    const size = gzip === undefined ? { pieceItems: initialItems } : gzippedPiece
    const listing = await lister.list({ ...plan.initial, ...size, signal, lane })
    for await (const events of listing.open()) {
      await lane.next(signal)
      signal.throwIfAborted()
      const frames = writer.initialFrames(events)
      if (gzip === undefined) yield* frames
      else yield await gzip.list(Buffer.concat([...frames]))
    }
    if (plan.hasInitialBookmark) yield this.#coded(writer.bookmark(listing.version, true))
    return listing.version
  }

  #follow(from: Version, signal: AbortSignal): ChangesState {
    const { plan, lane } = this.#options
    const state: ChangesState = {
      kind: 'changes',
      watch: this.#api.storage.watch(plan.scope, { from, signal, lane }),
      bookmarks: plan.hasBookmarks
        ? setInterval(() => requestBookmark(state), bookmarkEveryMs)
        : undefined,
      isBookmarkDue: false,
      batch: undefined,
    }
    this.#state = state
    return state
  }

  #takeChange(state: ChangesState, wake: () => void): Buffer | undefined {
    for (;;) {
      const frame = this.#nextFrame(state)
      if (frame !== undefined) return this.#coded(frame)
      const batch = state.watch.take(wake)
      if (batch === undefined) {
        if (state.watch.isOver) this.stop()
        return undefined
      }
      const frames = this.#options.writer.changeFrames(batch)[Symbol.iterator]()
      state.batch = { frames, version: batch.version }
    }
  }

  /** Returns the next frame of the current batch and, after the batch, a bookmark if one is due. */
  #nextFrame(state: ChangesState): Buffer | undefined {
    const { batch } = state
    if (batch === undefined) return undefined
    const next = batch.frames.next()
    if (next.done !== true) return next.value
    state.batch = undefined
    if (!state.isBookmarkDue) return undefined
    state.isBookmarkDue = false
    return this.#options.writer.bookmark(batch.version, false)
  }

  /** Returns undefined for a watch that was cancelled or whose lifetime is over. */
  #errorFrame(error: unknown): Buffer | undefined {
    if (this.#end?.signal.aborted === true) return undefined
    const names = this.#api.registry.names
    const status = error instanceof StatusError ? error : watchFailure(error, names)
    if (status === undefined) throw error
    return this.#coded(this.#options.writer.error(status))
  }

  #coded(frame: Buffer): Buffer {
    return this.#options.gzip?.change(frame) ?? frame
  }

  /** The next `take` returns the ERROR frame instead of further changes. */
  readonly #refuse = (why: StatusError): void => {
    this.#refusal = why
    this.#end?.abort()
  }
}

/** The bookmark follows the next batch. Requests a progress batch, so that it comes soon. */
function requestBookmark(state: ChangesState): void {
  state.isBookmarkDue = true
  state.watch.requestProgress()
}

/** Node's maximum timer delay. */
const timerMsMax = 2 ** 31 - 1

/** Aborts with the request, or at the end of the watch's lifetime. */
export class WatchEnd implements Disposable {
  readonly #controller = new AbortController()
  readonly #listener: AbortListener
  readonly #timer: NodeJS.Timeout

  constructor(request: AbortSignal, lifetimeMs: number) {
    this.#timer = setTimeout(this.#end, Math.min(lifetimeMs, timerMsMax))
    this.#listener = new AbortListener(request, this.#end)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#listener[Symbol.dispose]()
  }

  abort(): void {
    this.#controller.abort()
  }

  readonly #end = (): void => this.abort()
}
