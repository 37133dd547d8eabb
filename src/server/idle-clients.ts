/**
 * How many connections and watches fit into the memory limit. Idle ones hold nothing that is counted
 * in bytes, so their numbers are limited.
 */

import { limitFlags } from '../options/limit-flags.ts'
import type { Options } from '../options/options.ts'

/** A TLS connection takes 71 KiB on HTTP/1.1, measured by `idle-clients.test.ts`. */
const CONNECTION_BYTES = 80 * 1024
/** A watch takes 13 KiB on HTTP/2, with a hundred watches on each connection; rounded up. */
const WATCH_BYTES = 16 * 1024
/** Parts of what the program leaves. */
const CONNECTIONS_PART = 1 / 6
const WATCHES_PART = 1 / 8
/** A replica with fewer would serve nobody. */
const LEAST = { maxConnections: 100, maxWatches: 400, maxWatchesPerUser: 100 }
/** One user may have this part of the watches, as by default. */
const USER_PART = limitFlags.maxWatchesPerUser.default / limitFlags.maxWatches.default
/** A connection that waits unread takes about 5 KiB. */
const SOCKETS_PER_CONNECTION = 8

export type IdleClientOptions = Pick<
  Options,
  'maxWatches' | 'maxWatchesPerUser' | 'maxConnections' | 'maxConnectionsPerUser'
>

/** 0 watches mean no limit. */
export interface IdleClients {
  readonly connections: number
  readonly userConnections: number
  readonly watches: number
  readonly userWatches: number
  /** TCP connections that are accepted, including those that wait unread. */
  readonly sockets: number
  /** Whether a default was lowered. */
  readonly isReduced: boolean
}

/** A flag that is not at its default was chosen, and stays. `restBytes`: without the program. */
export function idleClients(restBytes: number, options: IdleClientOptions): IdleClients {
  const { maxWatches, maxWatchesPerUser, maxConnections, maxConnectionsPerUser } = options
  const connections = sized('maxConnections', maxConnections, () =>
    Math.floor((restBytes * CONNECTIONS_PART) / CONNECTION_BYTES),
  )
  const watches = sized('maxWatches', maxWatches, () =>
    Math.floor((restBytes * WATCHES_PART) / WATCH_BYTES),
  )
  const userWatches = sized('maxWatchesPerUser', maxWatchesPerUser, () =>
    watches === 0 ? maxWatchesPerUser : Math.floor(watches * USER_PART),
  )
  return {
    connections,
    userConnections: Math.min(connections, maxConnectionsPerUser),
    watches,
    userWatches,
    sockets: Math.min(limitFlags.maxConnections.default, SOCKETS_PER_CONNECTION * connections),
    isReduced: connections < maxConnections || watches < maxWatches,
  }
}

function sized(flag: keyof typeof LEAST, value: number, affordable: () => number): number {
  if (value !== limitFlags[flag].default) return value
  return Math.min(value, Math.max(LEAST[flag], affordable()))
}
