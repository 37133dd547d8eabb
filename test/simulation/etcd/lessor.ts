/**
 * The leases of the leader, which alone measures their time. Every member that believes it leads
 * measures for itself, so a former leader answers from its own, older view until it learns better.
 */
import { electionMs } from './leadership.ts'
import type { Lease } from './machine.ts'
import type { MemberProcess } from './process.ts'

/** How often expired leases are looked for. */
const periodMs = 500
/** An expired lease that is still there is revoked again after this: the timeout of a request. */
const retryMs = 7_000

interface Held {
  readonly lease: Lease
  expiry: number
  /** When to revoke it, again if need be. */
  dueAt: number
  /** Renewals that came after the expiry wait until it is revoked. */
  readonly waiting: ((isRevoked: boolean) => void)[]
}

export class Lessor {
  readonly #process: MemberProcess
  readonly #revoke: (id: bigint) => void
  /** Undefined while this member is not the leader. */
  #held: Map<bigint, Held> | undefined
  #cancelTick: (() => void) | undefined
  #tickAt = Number.POSITIVE_INFINITY

  constructor(process: MemberProcess, revoke: (id: bigint) => void) {
    this.#process = process
    this.#revoke = revoke
  }

  get isPrimary(): boolean {
    return this.#held !== undefined
  }

  /** Takes over: every lease gets its full time, and an election timeout more. */
  promote(leases: Iterable<Lease>): void {
    this.#held = new Map()
    this.#stop()
    for (const lease of leases) this.#hold(lease, electionMs + lease.ttlSeconds * 1000)
  }

  demote(): void {
    const held = this.#held
    this.crash()
    for (const { waiting } of held?.values() ?? []) for (const done of waiting) done(false)
  }

  /** The process ends: pending renewals get no reply. */
  crash(): void {
    this.#held = undefined
    this.#stop()
  }

  granted(lease: Lease): void {
    if (this.#held !== undefined) this.#hold(lease, lease.ttlSeconds * 1000)
  }

  revoked(id: bigint): void {
    const held = this.#held?.get(id)
    this.#held?.delete(id)
    for (const done of held?.waiting ?? []) done(true)
  }

  /** Undefined: there is no such lease. */
  remaining(id: bigint): { readonly ms: number; readonly lease: Lease } | undefined {
    const held = this.#held?.get(id)
    return held && { ms: held.expiry - this.#now(), lease: held.lease }
  }

  /** `done` gets the new time to live; 0 when the lease is gone, undefined when not the leader. */
  renew(id: bigint, done: (ttl: number | undefined) => void): void {
    const held = this.#held?.get(id)
    if (held === undefined) {
      done(this.#held === undefined ? undefined : 0)
    } else if (held.expiry <= this.#now()) {
      held.waiting.push((isRevoked) => done(isRevoked ? 0 : undefined))
    } else {
      held.expiry = this.#now() + held.lease.ttlSeconds * 1000
      held.dueAt = held.expiry
      done(held.lease.ttlSeconds)
    }
  }

  #hold(lease: Lease, ms: number): void {
    const expiry = this.#now() + ms
    this.#held?.set(lease.id, { lease, expiry, dueAt: expiry, waiting: [] })
    this.#scheduleAt(expiry)
  }

  /** Late when the process was stopped. */
  #tick(): void {
    const now = this.#now()
    const due: bigint[] = []
    for (const held of this.#held?.values() ?? []) {
      if (held.dueAt > now) continue
      held.dueAt = now + retryMs
      due.push(held.lease.id)
    }
    for (const id of due) this.#revoke(id)
    for (const { dueAt } of this.#held?.values() ?? []) this.#scheduleAt(dueAt)
  }

  #scheduleAt(dueAt: number): void {
    const at = Math.ceil((Math.max(dueAt, this.#now()) + 0.001) / periodMs) * periodMs
    if (at >= this.#tickAt) return
    this.#stop()
    this.#tickAt = at
    this.#cancelTick = this.#process.timer(at - this.#now(), () => {
      this.#stop()
      this.#tick()
    })
  }

  #stop(): void {
    this.#cancelTick?.()
    this.#cancelTick = undefined
    this.#tickAt = Number.POSITIVE_INFINITY
  }

  #now(): number {
    return this.#process.world.now()
  }
}
