import type { Http2Session } from 'node:http2'
import { constants } from 'node:http2'
import type { Clock } from '../lib/clock.ts'
import type { HttpLimits } from './limits.ts'

/** The highest stream id there can be: a GOAWAY with it announces the end without refusing anyone. */
const LAST_STREAM_ID_MAX = 2 ** 31 - 1
const CONTROL_WINDOW_MS = 10_000

interface SessionState {
  openStreams: number
  hasServed: boolean
  idleSince: number
  controlFrames: number
  controlWindowEndsAt: number
}

/**
 * Looks after HTTP/2 connections, which Node by itself keeps for ever: ends the silent ones,
 * cuts those that flood us with control frames, and says goodbye to all of them at shutdown.
 */
export class Sessions {
  readonly #states = new Map<Http2Session, SessionState>()
  readonly #limits: HttpLimits
  readonly #clock: Clock

  constructor(limits: HttpLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
  }

  get size(): number {
    return this.#states.size
  }

  add(session: Http2Session): void {
    const now = this.#clock.now()
    const state: SessionState = {
      openStreams: 0,
      hasServed: false,
      idleSince: now,
      controlFrames: 0,
      controlWindowEndsAt: now + CONTROL_WINDOW_MS,
    }
    this.#states.set(session, state)
    session.setLocalWindowSize(this.#limits.connectionWindowBytes)
    session.on('close', () => this.#states.delete(session))
    // A broken connection is the client's affair and ends its requests through their own events.
    session.on('error', () => session.destroy())
    session.on('ping', () => this.#countControlFrame(session, state))
    session.on('remoteSettings', () => this.#countControlFrame(session, state))
  }

  streamOpened(session: Http2Session): void {
    const state = this.#states.get(session)
    if (state === undefined) return
    state.openStreams += 1
    state.hasServed = true
  }

  streamClosed(session: Http2Session): void {
    const state = this.#states.get(session)
    if (state === undefined) return
    state.openStreams -= 1
    state.idleSince = this.#clock.now()
  }

  /**
   * Ends connections without a request. A new one has as long as headers may take, so that a
   * header block that never ends is cut as it is on HTTP/1.1; afterwards the idle limit counts.
   */
  sweep(): void {
    const now = this.#clock.now()
    for (const [session, state] of this.#states) {
      if (state.openStreams > 0) continue
      const limit = state.hasServed ? this.#limits.idleTimeoutMs : this.#limits.headersTimeoutMs
      if (now - state.idleSince >= limit) session.close()
    }
  }

  /** Asks clients to open no new streams, while those already on their way are still served. */
  announceEnd(): void {
    for (const session of this.#states.keys()) {
      session.goaway(constants.NGHTTP2_NO_ERROR, LAST_STREAM_ID_MAX)
    }
  }

  /** Refuses new streams; a connection goes when its last stream has ended. */
  close(): void {
    for (const session of this.#states.keys()) session.close()
  }

  #countControlFrame(session: Http2Session, state: SessionState): void {
    const now = this.#clock.now()
    if (now >= state.controlWindowEndsAt) {
      state.controlWindowEndsAt = now + CONTROL_WINDOW_MS
      state.controlFrames = 0
    }
    state.controlFrames += 1
    if (state.controlFrames > this.#limits.controlFramesPerTenSeconds) {
      session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
    }
  }
}
