/**
 * Places for health, version and metrics: what tells about the server must go on when it is full.
 * A client that leaves its answers unread holds its places. So each caller has a few only, and those on
 * whom the life of a replica depends have places that others cannot take: a probe that is refused gets
 * the replica restarted.
 */

import type { Peer } from '../../http/exchange.ts'
import { networkOf } from '../../lib/network.ts'
import { ANONYMOUS, HOST, isMaster, type User } from '../user.ts'
import { immediatePlaces, type Place } from './fair-places.ts'

const EXEMPT = /^\/(?:healthz|livez|readyz|version|metrics)(?:\/|$)/
const SHARED_PLACES = 100
/** Of one user or, without credentials, of one address: kubelet has three probes, a scraper one request. */
const PLACES_PER_CALLER = 4
/** For processes on this host and for paths open to all, when the shared ones are taken. */
const PROBE_PLACES = 100
/** For processes on this host without credentials and for masters, when those are taken as well. */
const TRUSTED_PLACES = 40
const TRUSTED_PLACES_PER_CALLER = 20

/** Who asks about the server. */
export interface Prober {
  readonly user: User
  readonly peer: Peer | undefined
  /** The path is open to all: kubelet asks for it without credentials. */
  readonly isOpen: boolean
}

/** Whether a path that stands for no object tells about the server itself. */
export function isProbePath(path: string): boolean {
  return EXEMPT.test(path)
}

export class ProbePlaces {
  readonly #shared = immediatePlaces(SHARED_PLACES, PLACES_PER_CALLER)
  readonly #probes = immediatePlaces(PROBE_PLACES, PLACES_PER_CALLER)
  readonly #trusted = immediatePlaces(TRUSTED_PLACES, TRUSTED_PLACES_PER_CALLER)

  /** Undefined when the caller holds as many as it may, or all are taken. */
  tryEnter({ user, peer, isOpen }: Prober): Place | undefined {
    // Callers without credentials share a name, and are told apart by their address.
    const key = user === ANONYMOUS ? networkOf(peer?.address ?? '') : user.name
    const entering = { user: key, width: 1 }
    const isTrusted = user === HOST || isMaster(user)
    const isProbe = isTrusted || peer?.isLoopback === true || (isOpen && user === ANONYMOUS)
    return (
      this.#shared.tryEnter(entering) ??
      (isProbe ? this.#probes.tryEnter(entering) : undefined) ??
      (isTrusted ? this.#trusted.tryEnter(entering) : undefined)
    )
  }
}
