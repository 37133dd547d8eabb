import { Backoff } from '../lib/backoff.ts'
import { EtcdError, errorFromStatus } from './errors.ts'
import { encode, methods, reconnectFirstMs, reconnectMostMs, startCall } from './grpc.ts'
import type { ConnectionNumber } from './protocol/protocol.ts'
import { StatusRequestSchema } from './protocol/rpc_pb.ts'
import type { Target } from './transport/channel.ts'
import { Client } from './transport/client.ts'
import { status } from './transport/codes.ts'

export type ConnectionState = 'idle' | 'connecting' | 'ready' | 'failing'

/** How long a connection attempt may take before it is replaced; doubles up to the maximum. */
const connectTimeoutMs = 2_500
const connectTimeoutMostMs = 10_000
const connectErrorTimeoutMs = 500
/** The channel retries without a change of state: how often to read why the last attempt failed. */
const connectErrorIntervalMs = 1_000
/** How often a connection is probed, and how soon it must respond. */
const probeIntervalMs = 5_000
const probeTimeoutMs = 2_000

/**
 * One connection to one member, kept open until it is closed.
 *
 * The channel reconnects only on request after a connection was lost, waits long for a member that
 * accepts and then stays silent (a paused member, a lost machine), and may not ping etcd while no
 * call is in flight. This class does all three: it replaces the ping by a small status call now and
 * then, which also detects a member that is stuck.
 */
export class Connection {
  readonly #endpoint: string
  readonly #target: Target
  readonly #onChange: () => void
  readonly #nextNumber: () => ConnectionNumber
  readonly #backoff = new Backoff({ firstMs: reconnectFirstMs, mostMs: reconnectMostMs })
  #client: Client
  #state: ConnectionState = 'idle'
  #number: ConnectionNumber = 0
  #lost = new AbortController()
  #lastError: EtcdError | undefined
  /** Whether there was a connection that was lost since, and whether it carried any response. */
  #wasReady = false
  #hadResponse = false
  #connectTimeoutMs = connectTimeoutMs
  #timer: NodeJS.Timeout | undefined
  #isSilent = false
  #closed = false

  constructor(options: {
    /** As configured, for messages. */
    readonly endpoint: string
    readonly target: Target
    readonly onChange: () => void
    readonly nextNumber: () => ConnectionNumber
  }) {
    this.#endpoint = options.endpoint
    this.#target = options.target
    this.#onChange = options.onChange
    this.#nextNumber = options.nextNumber
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

  /** Whether the last probe got no response in time although the connection is open. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /** A response was received on this connection. */
  noteResponse(): void {
    this.#hadResponse = true
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#state = 'idle'
    this.#lost.abort()
    this.#client.close()
  }

  #open(): Client {
    return new Client(this.#target)
  }

  /** Reads the state of the channel now and after each change. */
  #follow(client: Client): void {
    if (this.#closed || client !== this.#client) return
    const { channel } = client
    const { state } = channel
    channel.onChange(() => this.#follow(client))
    clearTimeout(this.#timer)
    if (state !== 'ready') this.#lost.abort()
    switch (state) {
      case 'ready':
        this.#number = this.#nextNumber()
        this.#lost = new AbortController()
        this.#wasReady = true
        this.#hadResponse = false
        this.#connectTimeoutMs = connectTimeoutMs
        this.#lastError = undefined
        this.#isSilent = false
        this.#schedule(probeIntervalMs, () => this.#probe(client))
        this.#enter('ready')
        break
      case 'connecting':
        this.#schedule(this.#connectTimeoutMs, () => this.#startOver())
        this.#enter('connecting')
        break
      case 'failing':
        this.#enter('failing')
        this.#readConnectError(client)
        break
      case 'idle':
        this.#schedule(this.#reconnectDelayMs(), () => channel.connect())
        this.#enter('idle')
        break
      case 'closed':
        break
    }
  }

  #enter(state: ConnectionState): void {
    if (state === this.#state) return
    this.#state = state
    this.#onChange()
  }

  /** At once, unless connections are lost before they carried any response: then with backoff. */
  #reconnectDelayMs(): number {
    if (!this.#wasReady) return 0
    this.#wasReady = false
    if (!this.#hadResponse) return this.#backoff.next()
    this.#backoff.reset()
    return 0
  }

  /** The connection attempt got stuck, before or after it was accepted: open another one. */
  #startOver(): void {
    this.#connectTimeoutMs = Math.min(connectTimeoutMostMs, this.#connectTimeoutMs * 2)
    this.#lastError = new EtcdError({
      kind: 'unavailable',
      message: `no connection to ${this.#endpoint}: it does not respond`,
      endpoint: this.#endpoint,
    })
    const stuck = this.#client
    this.#client = this.#open()
    stuck.close()
    this.#follow(this.#client)
  }

  /**
   * The channel reports why it could not connect to a call. A call in this state ends at once with
   * that reason; if the connection opens first, the call is harmless.
   */
  #readConnectError(client: Client): void {
    this.#schedule(connectErrorIntervalMs, () => this.#readConnectError(client))
    const options = { request: statusRequest, timeoutMs: connectErrorTimeoutMs }
    startCall(client, methods.status, options, (error) => {
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
    const options = { request: statusRequest, timeoutMs: probeTimeoutMs }
    startCall(client, methods.status, options, (error) => {
      if (this.#closed || client !== this.#client || this.#state !== 'ready') return
      // Any response, also an error, shows that the member is alive.
      this.#isSilent = error?.code === status.DEADLINE_EXCEEDED
      if (!this.#isSilent) this.noteResponse()
      this.#schedule(probeIntervalMs, () => this.#probe(client))
    })
  }

  #schedule(ms: number, run: () => void): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => {
      if (!this.#closed) run()
    }, ms)
    // These timers must not keep the process alive.
    this.#timer.unref()
  }
}

const statusRequest: Buffer = encode(StatusRequestSchema, {})
