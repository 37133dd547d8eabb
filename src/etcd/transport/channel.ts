/**
 * One connection to one server at a time, and the calls that use it.
 *
 * It connects on request only, and reconnects by itself as long as attempts fail. A call waits while
 * the first attempt is made, and fails at once while attempts fail. When the connection breaks, its
 * calls fail, and the channel is idle. After a GOAWAY the channel is idle, too, and the calls in
 * flight may still end.
 */
import http2, { type ClientHttp2Session } from 'node:http2'
import net, { type Socket } from 'node:net'
import tls, { type SecureContext } from 'node:tls'
import { Backoff } from '../../lib/backoff.ts'
import { CallFailure, notSent } from './call-failure.ts'
import { type ChannelState, status } from './codes.ts'

export interface Target {
  readonly host: string
  readonly port: number
  /** Undefined: the connection is not encrypted. */
  readonly tls?: SecureContext | undefined
}

export interface ChannelOptions {
  /** After so many calls a connection is replaced. */
  readonly callsMost?: number
}

/** A connection that can carry calls. */
export interface Session {
  readonly http2: ClientHttp2Session
  readonly socket: Socket
  /** How many calls are in flight; each counts itself. */
  calls: number
  /** How many were started. */
  started: number
}

/** A call that has not ended. */
export interface OpenCall {
  /** There is a connection: send the request. May throw. */
  start(session: Session): void
  fail(failure: CallFailure): void
}

/** With the default of 64 KiB a page of events would take hundreds of round trips. */
const windowBytes = 4 * 1024 * 1024
/** Until the settings of the server have arrived. */
const attemptMsMax = 10_000
const backoffFirstMs = 100
const backoffMostMs = 1_000
/**
 * etcd allows a ping every 5 s while a call is in flight, and none otherwise; it responds to more
 * with GOAWAY. A little more, since pings do not take equally long to arrive.
 */
const pingEveryMs = 5_500
const pingTimeoutMs = 3_000
/** A connection has 2^30 streams, one for each call, and then fails all calls. */
const callsMost = 2 ** 29
/** Longer than any call. A server that does not close its side after a GOAWAY is cut off then. */
const retireAfterMs = 30_000

export class Channel {
  readonly #target: Target
  readonly #backoff = new Backoff({ firstMs: backoffFirstMs, mostMs: backoffMostMs })
  /** Calls that wait for the connection. */
  readonly #waiting = new Set<OpenCall>()
  /** Sessions that are not closed yet: the current one, and those that got a GOAWAY. */
  readonly #sessions = new Set<Session>()
  #state: ChannelState = 'idle'
  #watchers: (() => void)[] = []
  #session: Session | undefined
  #lastError: Error | undefined
  #timer: NodeJS.Timeout | undefined

  readonly #callsMost: number

  constructor(target: Target, options: ChannelOptions = {}) {
    this.#target = target
    this.#callsMost = options.callsMost ?? callsMost
  }

  get state(): ChannelState {
    return this.#state
  }

  /** Calls `run` once, at the next change of state. */
  onChange(run: () => void): void {
    this.#watchers.push(run)
  }

  connect(): void {
    if (this.#state !== 'idle') return
    this.#enter('connecting')
    // A watcher may have closed it.
    if (this.state === 'connecting') this.#attempt()
  }

  /** Starts a call now or, while the first attempt is made, when there is a connection. */
  add(call: OpenCall): void {
    if (this.#state === 'closed') throw new Error('the channel is closed')
    if (this.#state === 'ready' && this.#session !== undefined) this.#start(call, this.#session)
    else if (this.#state === 'failing') setImmediate(() => call.fail(this.#notConnected()))
    else {
      this.#waiting.add(call)
      this.connect()
    }
  }

  /** The call has ended. */
  remove(call: OpenCall): void {
    this.#waiting.delete(call)
  }

  close(): void {
    if (this.#state === 'closed') return
    clearTimeout(this.#timer)
    this.#session = undefined
    for (const session of this.#sessions) destroy(session)
    this.#enter('closed')
    this.#failWaiting(notSent())
  }

  #attempt(): void {
    const socket = openSocket(this.#target)
    const opened = http2.connect(this.#target.tls === undefined ? 'http://etcd' : 'https://etcd', {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: windowBytes },
      maxSessionMemory: Number.MAX_SAFE_INTEGER,
    })
    const session: Session = { http2: opened, socket, calls: 0, started: 0 }
    this.#sessions.add(session)
    this.#session = session
    this.#timer = setTimeout(() => socket.destroy(new Error('it does not respond')), attemptMsMax)
    let failure: Error | undefined
    opened.on('error', (error) => {
      failure ??= error
    })
    // Node does not close a session whose server refuses our certificate after the handshake.
    socket.on('error', (error) => {
      failure = error
      destroy(session)
    })
    socket.on('close', () => opened.destroy())
    opened.once('connect', () => opened.setLocalWindowSize(windowBytes))
    // Not at `connect`: a server that is paused accepts connections, and sends nothing.
    opened.once('remoteSettings', () => this.#connected(session))
    opened.once('goaway', () => this.#leave(session))
    opened.once('close', () => {
      this.#sessions.delete(session)
      if (failure !== undefined) this.#lastError = failure
      this.#leave(session)
    })
  }

  #connected(session: Session): void {
    if (this.#session !== session || session.http2.destroyed) return
    clearTimeout(this.#timer)
    this.#backoff.reset()
    this.#lastError = undefined
    keepAlive(session)
    this.#enter('ready')
    const calls = [...this.#waiting]
    this.#waiting.clear()
    for (const call of calls) this.add(call)
  }

  #start(call: OpenCall, session: Session): void {
    try {
      call.start(session)
    } catch {
      // The session is closing; that it has closed is reported later.
      setImmediate(() => call.fail(notSent()))
    }
    session.started += 1
    // Not at once: a session that is closed in the same tick loses the call.
    if (session.started === this.#callsMost) setImmediate(() => this.#leave(session))
  }

  /** No call can be started on this session any more. */
  #leave(session: Session): void {
    if (this.#session !== session) return
    this.#session = undefined
    clearTimeout(this.#timer)
    if (this.#state === 'ready') {
      // Calls in flight may end after a GOAWAY.
      session.http2.close()
      const timer = setTimeout(() => destroy(session), retireAfterMs)
      timer.unref()
      session.http2.once('close', () => clearTimeout(timer))
      this.#enter('idle')
      return
    }
    destroy(session)
    this.#timer = setTimeout(() => this.#attempt(), this.#backoff.next())
    this.#timer.unref()
    this.#enter('failing')
    this.#failWaiting(this.#notConnected())
  }

  #failWaiting(failure: CallFailure): void {
    const calls = [...this.#waiting]
    this.#waiting.clear()
    for (const call of calls) call.fail(failure)
  }

  #notConnected(): CallFailure {
    const reason = this.#lastError?.message ?? 'the connection was closed'
    return new CallFailure(status.UNAVAILABLE, `cannot connect: ${reason}`, { neverSent: true })
  }

  #enter(state: ChannelState): void {
    if (state === this.#state) return
    this.#state = state
    const watchers = this.#watchers
    this.#watchers = []
    for (const run of watchers) run()
  }
}

/** A session that is destroyed ends its socket, and waits for the server to do the same. */
function destroy({ http2: session, socket }: Session): void {
  session.destroy()
  socket.destroy()
}

function openSocket({ host, port, tls: secureContext }: Target): Socket {
  if (secureContext === undefined) return net.connect({ host, port, noDelay: true })
  return tls.connect({
    host,
    port,
    noDelay: true,
    secureContext,
    ALPNProtocols: ['h2'],
    // An address must not be sent as a name.
    ...(net.isIP(host) === 0 && { servername: host }),
    checkServerIdentity: (_name, certificate) => tls.checkServerIdentity(host, certificate),
  } as tls.ConnectionOptions)
}

/** Closes a connection whose server does not respond to a ping while calls are in flight. */
function keepAlive(session: Session): void {
  const timer = setInterval(() => {
    if (session.calls > 0) ping(session)
  }, pingEveryMs)
  timer.unref()
  session.http2.once('close', () => clearInterval(timer))
}

function ping(session: Session): void {
  if (session.http2.destroyed) return
  const timer = setTimeout(() => destroy(session), pingTimeoutMs)
  timer.unref()
  const isSent = session.http2.ping(() => clearTimeout(timer))
  if (!isSent) clearTimeout(timer)
}
