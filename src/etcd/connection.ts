import {
  type ChannelCredentials,
  type ChannelOptions,
  Client,
  connectivityState,
  status,
} from '@grpc/grpc-js'
import { Backoff } from '../lib/backoff.ts'
import { EtcdError, errorFromStatus } from './errors.ts'
import {
  channelOptions,
  encode,
  methods,
  reconnectFirstMs,
  reconnectMostMs,
  startCall,
} from './grpc.ts'
import type { ConnectionNumber } from './protocol.ts'
import { StatusRequestSchema } from './rpc_pb.ts'

export type ConnectionState = 'idle' | 'connecting' | 'ready' | 'failing'

/** How long a connection may take to become usable before we begin it anew, and the most of that. */
const connectPatienceMs = 2_500
const connectPatienceMostMs = 10_000
const reasonTimeoutMs = 500
/** gRPC goes on trying without a change of state: how often to learn why the latest try failed. */
const reasonIntervalMs = 1_000
/** How often a connection is tried out, and how soon it must answer. */
const probeIntervalMs = 5_000
const probeTimeoutMs = 2_000

/**
 * One connection to one member, kept up for as long as it is not closed.
 *
 * gRPC reconnects by itself but only when it is asked to, has no bound on a connection that was
 * accepted and then stays silent (a paused member, a lost machine), and may not ping etcd while no
 * call is under way. All three are looked after here: the last by asking a small question now and
 * then, which also tells a member that is stuck from one that is there.
 */
export class Connection {
  readonly #endpoint: string
  readonly #target: string
  readonly #credentials: ChannelCredentials
  readonly #options: ChannelOptions
  readonly #onChange: () => void
  readonly #takeNumber: () => ConnectionNumber
  readonly #backoff = new Backoff({ firstMs: reconnectFirstMs, mostMs: reconnectMostMs })
  #client: Client
  #state: ConnectionState = 'idle'
  #number: ConnectionNumber = 0
  #lost = new AbortController()
  #lastError: EtcdError | undefined
  /** Whether there was a connection that has been lost since, and whether it was of any use. */
  #wasReady = false
  #wasUseful = false
  #connectPatienceMs = connectPatienceMs
  #timer: NodeJS.Timeout | undefined
  #isSilent = false
  #closed = false

  constructor(options: {
    /** As configured, for messages. */
    readonly endpoint: string
    readonly target: string
    readonly credentials: ChannelCredentials
    /** Those that differ from endpoint to endpoint. */
    readonly options: ChannelOptions
    readonly onChange: () => void
    readonly takeNumber: () => ConnectionNumber
  }) {
    this.#endpoint = options.endpoint
    this.#target = options.target
    this.#credentials = options.credentials
    this.#options = { ...channelOptions, ...options.options }
    this.#onChange = options.onChange
    this.#takeNumber = options.takeNumber
    this.#client = this.#open()
    this.#follow(this.#client)
  }

  get client(): Client {
    return this.#client
  }

  get state(): ConnectionState {
    return this.#state
  }

  get number(): ConnectionNumber {
    return this.#number
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** Why the latest attempt to connect failed. */
  get lastError(): EtcdError | undefined {
    return this.#lastError
  }

  /** Whether the last question was not answered in time, though the connection is there. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** Something was answered on it. */
  noteAnswer(): void {
    this.#wasUseful = true
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#state = 'idle'
    // gRPC lets open streams go on until they end by themselves.
    this.#lost.abort()
    this.#client.close()
  }

  #open(): Client {
    return new Client(this.#target, this.#credentials, this.#options)
  }

  /** Notes the state of the channel now and again whenever it changes. */
  #follow(client: Client): void {
    if (this.#closed || client !== this.#client) return
    const channel = client.getChannel()
    const state = channel.getConnectivityState(false)
    channel.watchConnectivityState(state, Number.POSITIVE_INFINITY, () => this.#follow(client))
    clearTimeout(this.#timer)
    if (state !== connectivityState.READY) this.#lost.abort()
    switch (state) {
      case connectivityState.READY:
        this.#number = this.#takeNumber()
        this.#lost = new AbortController()
        this.#wasReady = true
        this.#wasUseful = false
        this.#connectPatienceMs = connectPatienceMs
        this.#lastError = undefined
        this.#isSilent = false
        this.#later(probeIntervalMs, () => this.#probe(client))
        this.#enter('ready')
        break
      case connectivityState.CONNECTING:
        this.#later(this.#connectPatienceMs, () => this.#startOver())
        this.#enter('connecting')
        break
      case connectivityState.TRANSIENT_FAILURE:
        this.#enter('failing')
        this.#learnReason(client)
        break
      case connectivityState.IDLE:
        this.#later(this.#reconnectDelayMs(), () => {
          channel.getConnectivityState(true)
        })
        this.#enter('idle')
        break
      case connectivityState.SHUTDOWN:
        break
    }
  }

  #enter(state: ConnectionState): void {
    if (state === this.#state) return
    this.#state = state
    this.#onChange()
  }

  /** At once, unless connections are lost before they were of any use: then slower and slower. */
  #reconnectDelayMs(): number {
    if (!this.#wasReady) return 0
    this.#wasReady = false
    if (!this.#wasUseful) return this.#backoff.next()
    this.#backoff.reset()
    return 0
  }

  /** The connection was accepted, or is being tried, and leads nowhere: take another one. */
  #startOver(): void {
    this.#connectPatienceMs = Math.min(connectPatienceMostMs, this.#connectPatienceMs * 2)
    this.#lastError = new EtcdError({
      kind: 'unavailable',
      message: `no connection to ${this.#endpoint}: it does not answer`,
      endpoint: this.#endpoint,
    })
    const stuck = this.#client
    this.#client = this.#open()
    stuck.close()
    this.#follow(this.#client)
  }

  /**
   * gRPC tells why it could not connect only to a call. One that is made in this state ends at once
   * with that reason; should the connection come up first, it is a harmless question.
   */
  #learnReason(client: Client): void {
    this.#later(reasonIntervalMs, () => this.#learnReason(client))
    const deadline = new Date(Date.now() + reasonTimeoutMs)
    startCall(client, methods.status, { request: statusRequest, deadline }, (error) => {
      if (error === undefined || this.#closed || this.#state !== 'failing') return
      const { code, details } = error
      this.#lastError = errorFromStatus({
        code,
        details,
        endpoint: this.#endpoint,
        write: false,
        cause: error,
      })
    })
  }

  #probe(client: Client): void {
    const deadline = new Date(Date.now() + probeTimeoutMs)
    startCall(client, methods.status, { request: statusRequest, deadline }, (error) => {
      if (this.#closed || client !== this.#client || this.#state !== 'ready') return
      // Any answer is a sign of life.
      this.#isSilent = error?.code === status.DEADLINE_EXCEEDED
      if (!this.#isSilent) this.noteAnswer()
      this.#later(probeIntervalMs, () => this.#probe(client))
    })
  }

  #later(ms: number, run: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (!this.#closed) run()
    }, ms)
    // Keeping a connection up is no reason for a process to live.
    this.#timer.unref()
  }
}

const statusRequest: Buffer = encode(StatusRequestSchema, {})
