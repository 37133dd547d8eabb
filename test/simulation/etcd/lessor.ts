/**
 * The leases as the leader keeps them: it alone measures their time. Every leader measures for
 * itself, so a former leader that has not noticed yet answers from its own, older view.
 */
import type { Lease } from './machine.ts'
import type { MemberProcess } from './process.ts'
import { electionMs } from './raft/raft.ts'

/** How often expired leases are looked for. */
const periodMs = 500
/** At most so many are revoked at a time. */
const revokedMax = 500
/** An expired lease that is still there is revoked again after this: the timeout of a request. */
const retryMs = 7_000
/** More leases than this are spread out when a leader takes over: revocations per second. */
const revokeRate = 1_000

interface Held {
  readonly lease: Lease
  expiry: number
  /** When to revoke it, again if need be. */
  dueAt: number
  /** Renewals that came after the expiry wait until it is revoked. */
  waiting: ((isRevoked: boolean) => void)[] | undefined
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
    const held = new Map<bigint, Held>()
    const now = this.#now()
    for (const lease of leases) {
      const expiry = now + electionMs + lease.ttlSeconds * 1000
      held.set(lease.id, { lease, expiry, dueAt: expiry, waiting: undefined })
    }
    this.#held = held
    if (held.size >= revokeRate) this.#spread([...held.values()], now)
    this.#schedule()
  }

  demote(): void {
    const held = this.#held
    this.#held = undefined
    this.#stop()
    for (const { waiting } of held?.values() ?? []) for (const done of waiting ?? []) done(false)
  }

  /** The process ends: nothing that waits is answered. */
  crash(): void {
    this.#held = undefined
    this.#stop()
  }

  granted(lease: Lease): void {
    if (this.#held === undefined) return
    const expiry = this.#now() + lease.ttlSeconds * 1000
    this.#held.set(lease.id, { lease, expiry, dueAt: expiry, waiting: undefined })
    this.#scheduleAt(expiry)
  }

  revoked(id: bigint): void {
    const waiting = this.#held?.get(id)?.waiting
    this.#held?.delete(id)
    for (const done of waiting ?? []) done(true)
  }

  /** Undefined: there is no such lease. */
  remaining(id: bigint): { readonly ms: number; readonly lease: Lease } | undefined {
    const held = this.#held?.get(id)
    return held && { ms: held.expiry - this.#now(), lease: held.lease }
  }

  /** `done` gets the new time to live; 0 when the lease is gone, undefined when not the leader. */
  renew(id: bigint, done: (ttl: number | undefined) => void): void {
    if (this.#held === undefined) {
      done(undefined)
      return
    }
    const held = this.#held.get(id)
    if (held === undefined) {
      done(0)
      return
    }
    if (held.expiry <= this.#now()) {
      held.waiting ??= []
      held.waiting.push((isRevoked) => done(isRevoked ? 0 : undefined))
      return
    }
    held.expiry = this.#now() + held.lease.ttlSeconds * 1000
    held.dueAt = held.expiry
    done(held.lease.ttlSeconds)
  }

  /** After a stop of the process the timers are late. */
  #tick(): void {
    const now = this.#now()
    const due: bigint[] = []
    for (const held of this.#held?.values() ?? []) {
      if (held.dueAt > now || due.length === revokedMax) continue
      held.dueAt = now + retryMs
      if (held.expiry <= now) due.push(held.lease.id)
    }
    for (const id of due) this.#revoke(id)
    this.#schedule()
  }

  #schedule(): void {
    this.#stop()
    let earliest = Number.POSITIVE_INFINITY
    for (const { dueAt } of this.#held?.values() ?? []) if (dueAt < earliest) earliest = dueAt
    this.#scheduleAt(earliest)
  }

  #scheduleAt(dueAt: number): void {
    if (dueAt === Number.POSITIVE_INFINITY) return
    const at = Math.ceil((Math.max(dueAt, this.#now()) + 0.001) / periodMs) * periodMs
    if (at >= this.#tickAt) return
    this.#stop()
    this.#tickAt = at
    this.#cancelTick = this.#process.timer(at - this.#now(), () => {
      this.#tickAt = Number.POSITIVE_INFINITY
      this.#cancelTick = undefined
      this.#tick()
    })
  }

  #stop(): void {
    this.#cancelTick?.()
    this.#cancelTick = undefined
    this.#tickAt = Number.POSITIVE_INFINITY
  }

  /** Leases that would expire together are spread, to three quarters of the rate of revocation. */
  #spread(all: Held[], now: number): void {
    all.sort((a, b) => a.expiry - b.expiry)
    const perSecond = (3 * revokeRate) / 4
    let base = (all[0] as Held).expiry - now
    let next = base + 1000
    let expires = 0
    for (const held of all) {
      const remaining = held.expiry - now
      if (remaining > next) {
        base = remaining
        next = base + 1000
        expires = 1
        continue
      }
      expires++
      if (expires <= perSecond) continue
      const delay = 1000 * (expires / perSecond) - (remaining - base)
      next = base + delay
      held.expiry = now + delay + electionMs + held.lease.ttlSeconds * 1000
      held.dueAt = held.expiry
    }
  }

  #now(): number {
    return this.#process.world.now()
  }
}
