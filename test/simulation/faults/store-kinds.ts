/** Faults of the store of an archive, and of the processes that write its files. */
import type { Random } from '../../support/random.ts'
import type { FaultOf } from '../../worlds/faults.ts'
import type { Bucket } from '../history/bucket.ts'
import type { Begun, FaultKind, FaultTarget } from './kinds.ts'

/** A kind that needs an archive. */
function ofStore(
  options: Omit<FaultKind, 'begin'>,
  begin: (bucket: Bucket, random: Random, target: FaultTarget) => Begun | undefined,
): FaultKind {
  return {
    ...options,
    begin: (target, random) => target.bucket && begin(target.bucket, random, target),
  }
}

/** The faults that need an archive. */
export type StoreFault = Extract<FaultOf<'simulated'>, `store-${string}` | `engine-${string}`>

export const storeFaultKinds: Readonly<Record<StoreFault, FaultKind>> = {
  'store-refuses': ofStore({ weight: 4, ms: [500, 120_000] }, (bucket, random) => {
    const kind = random.pick(['unavailable', 'unavailable', 'denied'] as const)
    bucket.refusal = { share: random.pick([0.1, 0.5, 1]), kind }
    return {
      what: `refuses ${bucket.refusal.share} of requests as ${kind}`,
      end: () => {
        bucket.refusal = undefined
      },
    }
  }),
  'store-stop': ofStore({ weight: 2, ms: [500, 60_000] }, (bucket) => {
    bucket.stop()
    return { what: 'the store', end: () => bucket.resume() }
  }),
  'store-slow': ofStore({ weight: 2, ms: [500, 30_000] }, (bucket, random) => {
    const most = random.pick([100, 2_000, 20_000])
    bucket.slow({ least: 0, most })
    return { what: `up to ${most} ms`, end: () => bucket.slow() }
  }),
  'store-link-cut': ofStore({ weight: 2, ms: [500, 60_000] }, (bucket, random, { replicas }) => {
    const cut = replicas.filter(() => random.chance(0.6)).map(({ index }) => index)
    for (const replica of cut) bucket.cutOff(replica)
    const end = () => {
      for (const replica of cut) bucket.reconnect(replica)
    }
    return { what: `from replicas ${cut.join(', ')}`, end }
  }),
  'store-full': ofStore({ weight: 1, ms: [500, 60_000] }, (bucket) => {
    bucket.isFull = true
    return {
      what: 'the store',
      end: () => {
        bucket.isFull = false
      },
    }
  }),
  'store-lies': ofStore({ weight: 6, ms: [0, 0] }, (bucket, random) => {
    const lie = random.pick(['loses', 'truncates', 'garbles'] as const)
    bucket.lies.push(lie)
    return { what: `${lie} the next put` }
  }),
  'engine-crash': ofStore({ weight: 4, ms: [0, 0] }, (_, random, { replicas }) => {
    const replica = replicas[random.below(replicas.length)]
    const count = replica?.engines?.kill() ?? 0
    return count === 0 ? undefined : { what: `${replica?.name}` }
  }),
  'engine-stop': ofStore({ weight: 2, ms: [500, 90_000] }, (_, random, { replicas }) => {
    const replica = replicas[random.below(replicas.length)]
    const engines = replica?.engines
    if (engines === undefined) return undefined
    engines.stop()
    return { what: `${replica?.name}`, end: () => engines.resume() }
  }),
}
