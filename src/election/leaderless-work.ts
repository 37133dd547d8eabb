/**
 * Works without a leader while none can be elected.
 *
 * A full etcd rejects leases and keys, so no leader can be elected; it still accepts deletes and
 * compactions, which are what it needs. Retention does not depend on a single leader, so every
 * replica that cannot campaign works anyway, until a leader is elected again.
 * Several replicas may work at once, which is wasteful but harmless. Each of them deletes events
 * with a random delay of its own, so that most find already done what the first one does.
 */
import { EtcdError } from '../etcd/errors.ts'
import { LinkedAbort, pause } from '../lib/abort.ts'
import type { Log } from '../lib/log/log.ts'
import type { Term } from './term.ts'

/** The random delay of a replica is below this many lease times. */
const delayLeases = 2

export interface LeaderlessWorkOptions<Lease> {
  readonly work: (term: Term) => Promise<void>
  /** As in LeadershipOptions. */
  readonly task: string
  /** One more election attempt; `full` when etcd still rejects it. */
  readonly tryElection: (signal: AbortSignal) => Promise<Lease | 'taken' | 'full'>
  /** Time to live of the leader lease; elections are attempted about as often. */
  readonly ttlMs: number
  /** Uniform in [0, 1). */
  readonly random: () => number
  readonly log: Log
  readonly signal: AbortSignal
}

/** Works until aborted or until a leader is elected. Returns the lease if it is this replica. */
export async function workWithoutLeader<Lease>(
  options: LeaderlessWorkOptions<Lease>,
): Promise<Lease | undefined> {
  const { work, task, ttlMs, random, log, signal } = options
  using ending = new LinkedAbort(signal)
  const term: Term = {
    signal: ending.signal,
    // The mod revision of a key that does not exist.
    revision: 0,
    isHeld: () => !ending.signal.aborted,
    heldUntil: Number.POSITIVE_INFINITY,
    lateMs: Math.round(ttlMs * delayLeases * random()),
  }
  log.warn(`etcd is full, no leader can be elected: this replica ${task} without one`)
  try {
    const [lease] = await Promise.all([
      untilElection(options, ending.signal).finally(ending.abort),
      work(term).finally(ending.abort),
    ])
    return lease
  } finally {
    log.info(`This replica no longer ${task} without an election`)
  }
}

async function untilElection<Lease>(
  { tryElection, ttlMs, random, log }: LeaderlessWorkOptions<Lease>,
  signal: AbortSignal,
): Promise<Lease | undefined> {
  while (!signal.aborted) {
    await pause(ttlMs * (0.5 + random() / 2), signal)
    if (signal.aborted) return undefined
    try {
      const outcome = await tryElection(signal)
      if (outcome === 'taken') return undefined
      if (outcome !== 'full') return outcome
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      // Whether another replica is the leader is not known; the work stays harmless.
      if (!signal.aborted) log.v(2, 'Election attempt failed; will retry', { err: error })
    }
  }
  return undefined
}
