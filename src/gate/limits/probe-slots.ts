/**
 * Slots for requests about the server itself (health, version, metrics), which must be served while
 * all slots of other requests are taken. Each caller has only a few, and the callers that decide
 * over the life of a replica have slots that others cannot take: when a probe is refused, the
 * replica is restarted.
 */
import type { Peer } from '../../http/exchange.ts'
import { networkOf } from '../../lib/network.ts'
import { ANONYMOUS, accountOf, HOST, isMaster, type User } from '../user.ts'
import { type Slot, slotsWithoutQueue } from './fair-slots.ts'

const SHARED_SLOTS = 100
/**
 * A caller is a user or, if anonymous, a network. Kubelet has three probes, a scraper one request.
 */
const SLOTS_PER_CALLER = 4
/** Used by processes on this host and for paths open to all when the shared slots are taken. */
const PROBE_SLOTS = 100
/** Used by processes on this host without credentials and by masters when those are taken too. */
const TRUSTED_SLOTS = 40
const TRUSTED_SLOTS_PER_CALLER = 20

export interface Prober {
  readonly user: User
  readonly peer: Peer | undefined
  /** Whether the path is open to all: kubelet probes it without credentials. */
  readonly isOpen: boolean
}

export class ProbeSlots {
  readonly #shared = slotsWithoutQueue(SHARED_SLOTS, SLOTS_PER_CALLER)
  readonly #probes = slotsWithoutQueue(PROBE_SLOTS, SLOTS_PER_CALLER)
  readonly #trusted = slotsWithoutQueue(TRUSTED_SLOTS, TRUSTED_SLOTS_PER_CALLER)

  /** Returns undefined when the caller holds its maximum, or all slots are taken. */
  tryEnter({ user, peer, isOpen }: Prober): Slot | undefined {
    // All anonymous callers have the same name, so they are counted by network.
    const key = user === ANONYMOUS ? networkOf(peer?.address ?? '') : accountOf(user)
    const slotRequest = { user: key, width: 1 }
    const isTrusted = user === HOST || isMaster(user)
    const isProbe = isTrusted || peer?.isLoopback === true || (isOpen && user === ANONYMOUS)
    return (
      this.#shared.tryEnter(slotRequest) ??
      (isProbe ? this.#probes.tryEnter(slotRequest) : undefined) ??
      (isTrusted ? this.#trusted.tryEnter(slotRequest) : undefined)
    )
  }
}
