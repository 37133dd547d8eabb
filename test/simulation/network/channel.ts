/** The channel of a gRPC client: one connection at a time, and the calls that use it. */
import { currentProcess } from '../kernel/current.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import type { Connection } from './connection.ts'
import { connectivityState, status } from './grpc-codes.ts'
import type { Network } from './network.ts'

/** The place of a process in the network. */
export interface Host {
  readonly network: Network
  readonly replica: number
}

const hosts = new WeakMap<SimulatedProcess, Host>()

/** Connects a process to a network: its gRPC clients reach the members of that network. */
export function attach(process: SimulatedProcess, host: Host): void {
  hosts.set(process, host)
}

export interface CallFailure {
  readonly code: number
  readonly details: string
}

/** A call or stream that has not ended. */
export interface OpenCall {
  /** The connection is there: send the request. */
  start(connection: Connection): void
  /** The connection is lost, or could not be established. */
  fail(failure: CallFailure): void
}

const connectRetryMs = 1_000
const backoffFirstMs = 100
const backoffMostMs = 1_000

interface StateWatcher {
  readonly state: number
  readonly run: () => void
}

/** `etcd-2` in `dns:etcd-2:2379`. */
const memberOfTarget = /^dns:etcd-(\d+):\d+$/

export class Channel {
  readonly process: SimulatedProcess
  readonly #host: Host
  readonly #member: number
  readonly #calls = new Set<OpenCall>()
  #state: number = connectivityState.IDLE
  #watchers: StateWatcher[] = []
  #connection: Connection | undefined
  #backoffMs = backoffFirstMs

  constructor(target: string) {
    const process = currentProcess()
    const host = process && hosts.get(process)
    const member = memberOfTarget.exec(target)?.[1]
    if (process === undefined || host === undefined || member === undefined) {
      throw new Error(`no simulated member at ${target}`)
    }
    this.process = process
    this.#host = host
    this.#member = Number(member)
  }

  getConnectivityState(tryToConnect: boolean): number {
    const state = this.#state
    if (tryToConnect && state === connectivityState.IDLE) this.#connect()
    return state
  }

  watchConnectivityState(state: number, _deadline: unknown, run: () => void): void {
    if (state === this.#state) this.#watchers.push({ state, run })
    else this.process.setImmediate(run)
  }

  close(): void {
    if (this.#state === connectivityState.SHUTDOWN) return
    this.#connection?.closeByClient()
    this.#connection = undefined
    this.#enter(connectivityState.SHUTDOWN)
  }

  /** Starts a call now, when the channel is connected, or never if it fails first. */
  add(call: OpenCall): void {
    if (this.#state === connectivityState.SHUTDOWN) throw new Error('the channel is closed')
    if (this.#state === connectivityState.TRANSIENT_FAILURE) {
      this.process.setImmediate(() => call.fail(refused))
      return
    }
    this.#calls.add(call)
    if (this.#connection !== undefined) {
      this.#connection.callsInFlight++
      call.start(this.#connection)
    } else this.getConnectivityState(true)
  }

  remove(call: OpenCall): void {
    if (this.#calls.delete(call) && this.#connection !== undefined) this.#connection.callsInFlight--
  }

  #connect(): void {
    this.#enter(connectivityState.CONNECTING)
    this.#attempt()
  }

  #attempt(): void {
    const { network, replica } = this.#host
    const link = network.link(replica, this.#member)
    this.process.after(network.delayMs(link) * 2, () => {
      if (!this.#isConnecting()) return
      if (network.isAccepting(replica, this.#member)) this.#connected()
      else if (network.isRefusing(replica, this.#member)) this.#refused()
      // The system repeats its request for a connection.
      else this.process.after(connectRetryMs, () => this.#isConnecting() && this.#attempt())
    })
  }

  #isConnecting(): boolean {
    const state = this.#state
    return state === connectivityState.CONNECTING || state === connectivityState.TRANSIENT_FAILURE
  }

  #connected(): void {
    const { network, replica } = this.#host
    this.#backoffMs = backoffFirstMs
    const link = network.link(replica, this.#member)
    const connection = network.open(this.process, link, () => this.#lost())
    this.#connection = connection
    this.#enter(connectivityState.READY)
    if (this.#connection !== connection) return
    for (const call of this.#calls) {
      connection.callsInFlight++
      call.start(connection)
    }
  }

  /** The state stays until a connection is there; calls fail meanwhile. */
  #refused(): void {
    this.#enter(connectivityState.TRANSIENT_FAILURE)
    this.#failAll(refused)
    const ms = this.#backoffMs * this.process.random.between(0.8, 1.2)
    this.#backoffMs = Math.min(backoffMostMs, this.#backoffMs * 1.6)
    this.process.setTimeout(() => this.#isConnecting() && this.#attempt(), ms)
  }

  #lost(): void {
    this.#connection = undefined
    this.#enter(connectivityState.IDLE)
    this.#failAll(dropped)
  }

  #failAll(failure: CallFailure): void {
    const calls = [...this.#calls]
    this.#calls.clear()
    for (const call of calls) call.fail(failure)
  }

  #enter(state: number): void {
    if (state === this.#state) return
    this.#state = state
    const watchers = this.#watchers
    this.#watchers = []
    for (const { run } of watchers) run()
  }
}

const dropped: CallFailure = { code: status.UNAVAILABLE, details: 'Connection dropped' }
const refused: CallFailure = {
  code: status.UNAVAILABLE,
  details: 'No connection established. Last error: Error: connect ECONNREFUSED',
}
