/**
 * Work without an election, while there can be none.
 *
 * An etcd that is full takes no lease and no key, so nobody can be elected; it does take deletes and
 * compactions, which are what it needs. Nothing that is done under a term rests on there being one
 * leader, so whoever could not stand works all the same, until somebody is elected again. Several
 * may do so at once, which is a waste and no more; each begins later than due by a time of its own,
 * so that most find done what the first of them does.
 */
import { EtcdError } from '../etcd/errors.ts'
import { pause } from '../lib/abort.ts'
import type { Log } from '../lib/log.ts'
import type { Term } from './leadership.ts'

/** Those who work without an election begin at different times within as many leases' time. */
const lateLeases = 2

export interface StandInOptions<Lease> {
  readonly work: (term: Term) => Promise<void>
  /** Stands for election once more; `full` when there still can be none. */
  readonly stand: (signal: AbortSignal) => Promise<Lease | 'taken' | 'full'>
  /** Of the lease that cannot be had: it is asked for about as often. */
  readonly ttlMs: number
  /** Uniform in [0, 1). */
  readonly random: () => number
  readonly log: Log
  readonly signal: AbortSignal
}

/** Works until aborted or until somebody is elected: with the lease, if it is this replica. */
export async function standIn<Lease>(options: StandInOptions<Lease>): Promise<Lease | undefined> {
  const { work, ttlMs, random, log, signal } = options
  const ending = new AbortController()
  const end = () => ending.abort()
  signal.addEventListener('abort', end)
  if (signal.aborted) end()
  const term: Term = {
    signal: ending.signal,
    // What the leader's key has while there is none.
    revision: 0,
    isHeld: () => !ending.signal.aborted,
    heldUntil: Number.POSITIVE_INFINITY,
    lateMs: Math.round(ttlMs * lateLeases * random()),
  }
  log.warn('etcd is full, nobody can be elected: this replica sweeps and compacts all the same')
  try {
    const [lease] = await Promise.all([
      untilElection(options, ending.signal).finally(end),
      work(term).finally(end),
    ])
    return lease
  } finally {
    signal.removeEventListener('abort', end)
    log.info('This replica no longer sweeps and compacts without an election')
  }
}

async function untilElection<Lease>(
  { stand, ttlMs, random, log }: StandInOptions<Lease>,
  signal: AbortSignal,
): Promise<Lease | undefined> {
  while (!signal.aborted) {
    await pause(ttlMs * (0.5 + random() / 2), signal)
    if (signal.aborted) return undefined
    try {
      const outcome = await stand(signal)
      if (outcome === 'taken') return undefined
      if (outcome !== 'full') return outcome
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error
      // Nothing is known of the others; the work is as harmless as before.
      if (!signal.aborted) log.v(2, 'Cannot stand for election', { err: error })
    }
  }
  return undefined
}
