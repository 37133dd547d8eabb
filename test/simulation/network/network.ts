/**
 * The network between replicas and members: one link for each pair, with its delay, and blocked in
 * either direction while a partition lasts.
 *
 * Connections behave like TCP: messages of one direction keep their order, a blocked direction
 * holds them until it is open again, and nothing tells either side. A connection that is reset loses
 * what was on its way.
 */
import type { Random } from '../../support/random.ts'
import type { Member } from '../etcd/contract.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import type { Scheduler } from '../kernel/scheduler.ts'
import { Connection } from './connection.ts'

export interface NetworkOptions {
  readonly scheduler: Scheduler
  readonly random: Random
  readonly members: () => readonly Member[]
  readonly replicas: number
  /** Each message that arrives: for the trace and the hash of the run. */
  readonly onMessage: (message: NetworkMessage) => void
}

export interface NetworkMessage {
  readonly replica: number
  readonly member: number
  readonly toMember: boolean
  readonly what: string
  readonly bytes: Buffer | undefined
}

/** Delays of a link, in milliseconds. */
export interface Delay {
  readonly least: number
  readonly most: number
}

export type Direction = 'toMember' | 'toReplica'

const usualDelay: Delay = { least: 0.1, most: 0.6 }

export interface Link {
  readonly replica: number
  readonly member: number
  delay: Delay
  /** Since when each direction is blocked. */
  readonly blockedSince: Record<Direction, number | undefined>
}

export class Network {
  readonly #options: NetworkOptions
  readonly #links: readonly (readonly Link[])[]
  readonly #connections = new Set<Connection>()
  /** Since when each member has been stopped. */
  readonly #stoppedSince: (number | undefined)[]

  constructor(options: NetworkOptions) {
    this.#options = options
    const members = options.members().length
    this.#stoppedSince = new Array<number | undefined>(members).fill(undefined)
    this.#links = Array.from({ length: options.replicas }, (_, replica) =>
      Array.from({ length: members }, (_unused, member) => ({
        replica,
        member,
        delay: usualDelay,
        blockedSince: { toMember: undefined, toReplica: undefined },
      })),
    )
  }

  get scheduler(): Scheduler {
    return this.#options.scheduler
  }

  member(index: number): Member {
    return this.#options.members()[index] as Member
  }

  isAccepting(replica: number, member: number): boolean {
    return !this.#isSilent(this.link(replica, member)) && this.member(member).isUp
  }

  /** Whether the member's machine refuses connections at once: it is reachable, and not running. */
  isRefusing(replica: number, member: number): boolean {
    return !this.#isBlocked(this.link(replica, member)) && !this.member(member).isUp
  }

  block(replica: number, member: number, direction: Direction): void {
    const link = this.link(replica, member)
    link.blockedSince[direction] ??= this.scheduler.now
  }

  unblock(replica: number, member: number, direction: Direction): void {
    const link = this.link(replica, member)
    if (link.blockedSince[direction] === undefined) return
    link.blockedSince[direction] = undefined
    for (const connection of this.#connections) {
      if (connection.link === link) connection.flush(direction)
    }
  }

  delay(replica: number, member: number, delay: Delay = usualDelay): void {
    this.link(replica, member).delay = delay
  }

  /** The member's process was stopped: its kernel keeps connections, but nothing responds. */
  memberStopped(member: number): void {
    this.#stoppedSince[member] = this.scheduler.now
  }

  memberResumed(member: number): void {
    this.#stoppedSince[member] = undefined
  }

  /** The member's process ended: its kernel resets the connections. */
  memberEnded(member: number): void {
    this.#stoppedSince[member] = undefined
    for (const connection of [...this.#connections]) {
      if (connection.link.member === member) connection.endByMember()
    }
  }

  /** The replica's process ended. */
  replicaEnded(replica: number): void {
    for (const connection of [...this.#connections]) {
      if (connection.link.replica === replica) connection.closeByClient()
    }
  }

  /** A middlebox forgets some connections: both sides see a reset. */
  resetSome(choose: (replica: number, member: number) => boolean): number {
    let count = 0
    for (const connection of [...this.#connections]) {
      if (!choose(connection.link.replica, connection.link.member)) continue
      connection.reset()
      count++
    }
    return count
  }

  link(replica: number, member: number): Link {
    return this.#links[replica]?.[member] as Link
  }

  open(process: SimulatedProcess, link: Link, onReset: () => void): Connection {
    const connection = new Connection({ network: this, process, link, onReset })
    this.#connections.add(connection)
    return connection
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection)
  }

  delayMs(link: Link): number {
    const { least, most } = link.delay
    return this.#options.random.between(least, most)
  }

  arrived(link: Link, toMember: boolean, what: string, bytes: Buffer | undefined): void {
    const { replica, member } = link
    this.#options.onMessage({ replica, member, toMember, what, bytes })
  }

  /** Since when the client has heard nothing; undefined while the link and the member work. */
  silentSince(link: Link): number | undefined {
    const { toMember, toReplica } = link.blockedSince
    const stopped = this.#stoppedSince[link.member]
    if (toMember === undefined && toReplica === undefined) return stopped
    const blocked = Math.min(toMember ?? Infinity, toReplica ?? Infinity)
    return Math.min(blocked, stopped ?? Infinity)
  }

  #isSilent(link: Link): boolean {
    return this.silentSince(link) !== undefined
  }

  #isBlocked(link: Link): boolean {
    const { toMember, toReplica } = link.blockedSince
    return toMember !== undefined || toReplica !== undefined
  }
}
