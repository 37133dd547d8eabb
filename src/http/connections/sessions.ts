import type { Http2Session } from 'node:http2'
import { constants } from 'node:http2'
import type { Clock } from '../../lib/clock.ts'
import type { HttpLimits } from '../limits.ts'

const CONTROL_WINDOW_MS = 10_000
const UNSEEN_WINDOW_MS = 10_000
/** Streams with oversized headers before our settings are acknowledged; each costs 3 ms. */
const UNSEEN_UNSETTLED_MAX = 10
/** How long a client may take to close its side after we have closed ours. */
const CLOSE_GRACE_MS = 500

interface SessionState {
  readonly socket: { destroy(): unknown }
  openStreams: number
  hasServed: boolean
  idleSince: number
  controlFrames: number
  controlWindowEndsAt: number
  readonly since: number
  /** Streams that Node has reported. */
  streams: number
  /** Streams that Node had rejected without a report when the current window began. */
  unseenBefore: number
  unseenWindowEndsAt: number
  /** The last stream to be served, once a GOAWAY has named it. */
  lastStream: number
  /** The client left a response unread: no new streams, socket destroyed after the last one. */
  hasStalled: boolean
  /** Time at which the socket is destroyed; set once the session has been closed or destroyed. */
  cutAt: number | undefined
}

/**
 * Manages HTTP/2 sessions, which Node leaves open without limit: closes idle ones, aborts those that
 * flood the server with control frames or oversized headers, and sends GOAWAY to all at shutdown.
 *
 * Node enforces most of our settings only once the client has acknowledged them. Until then a
 * header block of 16 KiB may expand to megabytes, by repeated references to one long field, and
 * costs ten times as much as later. So sessions without the acknowledgement are checked more often.
 */
export class Sessions {
  readonly #states = new Map<Http2Session, SessionState>()
  /** Sessions whose client has not acknowledged our settings yet. */
  readonly #unsettled = new Map<Http2Session, SessionState>()
  readonly #limits: HttpLimits
  readonly #clock: Clock
  #isEnding = false

  constructor(limits: HttpLimits, clock: Clock) {
    this.#limits = limits
    this.#clock = clock
  }

  get size(): number {
    return this.#states.size
  }

  /** Takes the socket as well: the session hides its own and releases it too early. */
  add(session: Http2Session, socket: SessionState['socket']): void {
    const now = this.#clock.now()
    const state: SessionState = {
      socket,
      openStreams: 0,
      hasServed: false,
      idleSince: now,
      controlFrames: 0,
      controlWindowEndsAt: now + CONTROL_WINDOW_MS,
      since: now,
      streams: 0,
      unseenBefore: 0,
      unseenWindowEndsAt: now + UNSEEN_WINDOW_MS,
      lastStream: Number.POSITIVE_INFINITY,
      hasStalled: false,
      cutAt: undefined,
    }
    this.#states.set(session, state)
    this.#unsettled.set(session, state)
    session.setLocalWindowSize(this.#limits.connectionWindowBytes)
    session.on('close', () => {
      this.#states.delete(session)
      this.#unsettled.delete(session)
    })
    session.on('localSettings', () => this.#unsettled.delete(session))
    // A connection error needs no handling here: the requests end through their own events.
    session.on('error', () => session.destroy())
    session.on('ping', () => this.#countControlFrame(session, state))
    session.on('remoteSettings', () => this.#countControlFrame(session, state))
    // Its handshake was not complete when the others got their GOAWAY.
    if (this.#isEnding) session.close()
  }

  /** False: the stream must not be served. The client knows, or will know, from the GOAWAY. */
  streamOpened(session: Http2Session, stream: number): boolean {
    const state = this.#states.get(session)
    if (state !== undefined) state.streams += 1
    if (state === undefined || stream > state.lastStream) return false
    state.openStreams += 1
    state.hasServed = true
    return true
  }

  streamClosed(session: Http2Session): void {
    const state = this.#states.get(session)
    if (state === undefined) return
    state.openStreams -= 1
    state.idleSince = this.#clock.now()
  }

  /** Must be called when a response was aborted because the client did not read it. */
  stalled(session: Http2Session): void {
    const state = this.#states.get(session)
    if (state === undefined || state.hasStalled) return
    state.hasStalled = true
    session.close()
  }

  /**
   * Closes sessions without requests. Until its first request a session has the headers timeout, so
   * that a header block that never ends is aborted as on HTTP/1.1; after that, the idle timeout.
   * The client may ignore the close of a session, and the close has no effect while a header block
   * is incomplete: so the socket is destroyed after a grace period.
   */
  sweep(): void {
    const now = this.#clock.now()
    for (const [session, state] of this.#states) {
      const isAbandoned = state.hasStalled && state.openStreams === 0
      if (isAbandoned || (state.cutAt !== undefined && now >= state.cutAt)) state.socket.destroy()
      else this.#checkUnseen(session, state, { now, unseenMax: this.#limits.refusedStreamsMax })
      if (state.cutAt !== undefined || state.openStreams > 0) continue
      const limit = state.hasServed ? this.#limits.idleTimeoutMs : this.#limits.headersTimeoutMs
      if (now - state.idleSince < limit) continue
      session.close()
      state.cutAt = now + CLOSE_GRACE_MS
    }
  }

  /** Must be called often. Aborts sessions that do not acknowledge our settings in time. */
  sweepUnsettled(): void {
    const now = this.#clock.now()
    for (const [session, state] of this.#unsettled) {
      this.#checkUnseen(session, state, { now, unseenMax: UNSEEN_UNSETTLED_MAX })
      if (now - state.since < this.#limits.handshakeTimeoutMs) continue
      this.#cut(session, state, constants.NGHTTP2_SETTINGS_TIMEOUT)
    }
  }

  /**
   * Sends a GOAWAY that names the last stream to be served, so that clients open no new streams. A
   * stream that crosses the GOAWAY is not served, and the client knows from the GOAWAY that it can
   * safely retry on another connection. Other servers first send a GOAWAY without a last stream;
   * with Node that would promise too much, because after any GOAWAY it drops new streams silently.
   * Until the GOAWAY is sent, though, Node still reports new streams: hence `lastStream`.
   */
  announceEnd(): void {
    this.#isEnding = true
    for (const [session, state] of this.#states) {
      // Its client has disconnected, only the event of that is still to come.
      if (session.destroyed) continue
      state.lastStream = session.state.lastProcStreamID ?? 0
      session.goaway(constants.NGHTTP2_NO_ERROR, state.lastStream)
    }
  }

  /** Refuses new streams. A connection closes when its last stream has ended. */
  close(): void {
    this.#isEnding = true
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
      this.#cut(session, state, constants.NGHTTP2_ENHANCE_YOUR_CALM)
    }
  }

  /**
   * Limits unseen streams: Node resets streams with too many or too long headers without reporting
   * them, and does not limit how many. They are counted by the id of the last stream. A few are
   * allowed, because well-behaved clients skip some ids.
   */
  #checkUnseen(
    session: Http2Session,
    state: SessionState,
    { now, unseenMax }: { readonly now: number; readonly unseenMax: number },
  ): void {
    // After a GOAWAY Node also drops valid streams, which clients may have sent before they got it.
    if (this.#isEnding || state.hasStalled || state.cutAt !== undefined) return
    const opened = ((session.state.lastProcStreamID ?? 0) + 1) / 2
    const unseen = Math.floor(opened) - state.streams
    if (unseen - state.unseenBefore > unseenMax) {
      this.#cut(session, state, constants.NGHTTP2_ENHANCE_YOUR_CALM)
    } else if (now >= state.unseenWindowEndsAt) {
      state.unseenBefore = unseen
      state.unseenWindowEndsAt = now + UNSEEN_WINDOW_MS
    }
  }

  #cut(session: Http2Session, state: SessionState, code: number): void {
    this.#unsettled.delete(session)
    // Without an error Node would ignore the code.
    session.destroy(new Error('the client exceeded a protocol limit'), code)
    state.cutAt ??= this.#clock.now() + CLOSE_GRACE_MS
  }
}
