/** The channel of a gRPC client: one connection at a time, and the calls that use it. */
import { type ChannelState, status } from '../../../src/etcd/transport/codes.ts'
import { currentProcess } from '../kernel/current.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import type { Connection } from './connection.ts'
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

const memberOfHost = /^etcd-(\d+)$/

export class Channel {
  readonly process: SimulatedProcess
  readonly #host: Host
  readonly #member: number
  readonly #calls = new Set<OpenCall>()
  #state: ChannelState = 'idle'
  #watchers: (() => void)[] = []
  #connection: Connection | undefined
  #backoffMs = backoffFirstMs

  constructor(target: string) {
    const process = currentProcess()
    const host = process && hosts.get(process)
    const member = memberOfHost.exec(target)?.[1]
    if (process === undefined || host === undefined || member === undefined) {
      throw new Error(`no simulated member at ${target}`)
    }
    this.process = process
    this.#host = host
    this.#member = Number(member)
  }

  get state(): ChannelState {
    return this.#state
  }

  onChange(run: () => void): void {
    this.#watchers.push(run)
  }

  connect(): void {
    if (this.#state !== 'idle') return
    this.#enter('connecting')
    this.#attempt()
  }

  close(): void {
    if (this.#state === 'closed') return
    this.#connection?.closeByClient()
    this.#connection = undefined
    this.#enter('closed')
  }

  /** Starts a call now, when the channel is connected, or never if it fails first. */
  add(call: OpenCall): void {
    if (this.#state === 'closed') throw new Error('the channel is closed')
    if (this.#state === 'failing') {
      this.process.setImmediate(() => call.fail(refused))
      return
    }
    this.#calls.add(call)
    if (this.#connection !== undefined) {
      this.#connection.callsInFlight++
      call.start(this.#connection)
    } else this.connect()
  }

  remove(call: OpenCall): void {
    if (this.#calls.delete(call) && this.#connection !== undefined) this.#connection.callsInFlight--
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
    return this.#state === 'connecting' || this.#state === 'failing'
  }

  #connected(): void {
    const { network, replica } = this.#host
    this.#backoffMs = backoffFirstMs
    const link = network.link(replica, this.#member)
    const connection = network.open(this.process, link, () => this.#lost())
    this.#connection = connection
    this.#enter('ready')
    if (this.#connection !== connection) return
    for (const call of this.#calls) {
      connection.callsInFlight++
      call.start(connection)
    }
  }

  /** The state stays until a connection is there; calls fail meanwhile. */
  #refused(): void {
    this.#enter('failing')
    this.#failAll(refused)
    const ms = this.#backoffMs * this.process.random.between(0.8, 1.2)
    this.#backoffMs = Math.min(backoffMostMs, this.#backoffMs * 1.6)
    this.process.setTimeout(() => this.#isConnecting() && this.#attempt(), ms)
  }

  #lost(): void {
    this.#connection = undefined
    this.#enter('idle')
    this.#failAll(dropped)
  }

  #failAll(failure: CallFailure): void {
    const calls = [...this.#calls]
    this.#calls.clear()
    for (const call of calls) call.fail(failure)
  }

  #enter(state: ChannelState): void {
    if (state === this.#state) return
    this.#state = state
    const watchers = this.#watchers
    this.#watchers = []
    for (const run of watchers) run()
  }
}

const dropped: CallFailure = { code: status.UNAVAILABLE, details: 'Connection dropped' }
const refused: CallFailure = {
  code: status.UNAVAILABLE,
  details: 'cannot connect: connect ECONNREFUSED',
}
