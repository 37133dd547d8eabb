import type { Http2Session } from 'node:http2'
import { constants } from 'node:http2'
import type { Clock } from '../lib/clock.ts'
import type { HttpLimits } from './limits.ts'

const CONTROL_WINDOW_MS = 10_000
const UNSEEN_WINDOW_MS = 10_000
/** Streams with headers beyond all bounds before our settings are acknowledged: 3 ms each. */
const UNSEEN_UNSETTLED_MAX = 10
/** How long a client may take to close its side after we have closed ours. */
const FAREWELL_MS = 500

interface SessionState {
  readonly socket: { destroy(): unknown }
  openStreams: number
  hasServed: boolean
  idleSince: number
  controlFrames: number
  controlWindowEndsAt: number
  readonly since: number
  /** Streams that came as far as us. */
  streams: number
  /** Streams that Node refused by itself until the current window began. */
  unseenBefore: number
  unseenWindowEndsAt: number
  /** The last stream to be served, once clients have been told that there will be no more. */
  lastStream: number
  /** Its client left a response unread: it gets no new streams, and is cut after the last. */
  hasStalled: boolean
  /** Set once we have taken our leave of a connection without requests. */
  cutAt: number | undefined
}

/**
 * Looks after HTTP/2 connections, which Node by itself keeps for ever: ends the silent ones,
 * cuts those that flood us with control frames or with headers that nobody could want, and says
 * goodbye to all of them at shutdown.
 *
 * A client is held to most of our settings only once it has acknowledged them. Until then a header
 * block of 16 KiB may stand for megabytes, by referring to one long field again and again, and costs
 * ten times of what it does later. So those that have not are looked at more often.
 */
export class Sessions {
  readonly #states = new Map<Http2Session, SessionState>()
  /** Those that have not acknowledged our settings yet. */
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

  /** The socket is asked for apart: the session hides its own, and gives it up too early. */
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
    // A broken connection is the client's affair and ends its requests through their own events.
    session.on('error', () => session.destroy())
    session.on('ping', () => this.#countControlFrame(session, state))
    session.on('remoteSettings', () => this.#countControlFrame(session, state))
    // Its handshake was still under way when the others were told.
    if (this.#isEnding) session.close()
  }

  /** False: its client has been told, or is about to be, that it is not going to be served. */
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

  /** A response on it was cut because its client did not read. */
  stalled(session: Http2Session): void {
    const state = this.#states.get(session)
    if (state === undefined || state.hasStalled) return
    state.hasStalled = true
    session.close()
  }

  /**
   * Ends connections without a request. A new one has as long as headers may take, so that a
   * header block that never ends is cut as it is on HTTP/1.1; afterwards the idle limit counts.
   * Closing a session is a request to the other side, which may ignore it, and does nothing while
   * a header block is unfinished: hence the cut.
   */
  sweep(): void {
    const now = this.#clock.now()
    for (const [session, state] of this.#states) {
      const isLeft = state.hasStalled && state.openStreams === 0
      if (isLeft || (state.cutAt !== undefined && now >= state.cutAt)) state.socket.destroy()
      else this.#judgeUnseen(session, state, { now, unseenMax: this.#limits.refusedStreamsMax })
      if (state.cutAt !== undefined || state.openStreams > 0) continue
      const limit = state.hasServed ? this.#limits.idleTimeoutMs : this.#limits.headersTimeoutMs
      if (now - state.idleSince < limit) continue
      session.close()
      state.cutAt = now + FAREWELL_MS
    }
  }

  /** To be called often: ends connections of clients that do not acknowledge our settings in time. */
  sweepUnsettled(): void {
    const now = this.#clock.now()
    for (const [session, state] of this.#unsettled) {
      this.#judgeUnseen(session, state, { now, unseenMax: UNSEEN_UNSETTLED_MAX })
      if (now - state.since < this.#limits.handshakeTimeoutMs) continue
      this.#cut(session, state, constants.NGHTTP2_SETTINGS_TIMEOUT)
    }
  }

  /**
   * Tells clients to open no new streams, and which was the last to be served. One that crosses
   * this message on its way is not served, and its client knows from the message that it can
   * safely ask elsewhere. To announce the end without naming a last stream, as other servers do,
   * would be a promise Node cannot keep: after any GOAWAY it drops new streams without a word.
   * Until the message is on its way, though, it goes on handing them out, hence `lastStream`.
   */
  announceEnd(): void {
    this.#isEnding = true
    for (const [session, state] of this.#states) {
      state.lastStream = session.state.lastProcStreamID ?? 0
      session.goaway(constants.NGHTTP2_NO_ERROR, state.lastStream)
    }
  }

  /** Refuses new streams; a connection goes when its last stream has ended. */
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
   * Streams whose headers are too many or too long Node resets without telling us, for ever. That
   * they were opened shows in the number of the last one; a few numbers honest clients leave out.
   */
  #judgeUnseen(
    session: Http2Session,
    state: SessionState,
    { now, unseenMax }: { readonly now: number; readonly unseenMax: number },
  ): void {
    // After a GOAWAY others are dropped too, and rightly sent.
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
    // Without an error Node would not look at the code.
    session.destroy(new Error('the client asks too much'), code)
    state.cutAt ??= this.#clock.now() + FAREWELL_MS
  }
}
