/** Faults of the origin of a mirrored cluster, and of the network between it and the replicas. */
import type { Random } from '../../support/random.ts'
import type { FaultOf } from '../../worlds/faults.ts'
import { versionStride } from '../mirror/origin-model.ts'
import type { OriginServer } from '../mirror/origin-server.ts'
import type { Begun, FaultKind, FaultTarget } from './kinds.ts'

/** A kind that needs an origin. */
function ofOrigin(
  options: Omit<FaultKind, 'begin'>,
  begin: (server: OriginServer, random: Random, target: FaultTarget) => Begun | undefined,
): FaultKind {
  return {
    ...options,
    begin: (target, random) => target.origin && begin(target.origin, random, target),
  }
}

/** The faults that need a mirrored cluster. */
export type OriginFault = Extract<FaultOf<'simulated'>, `origin-${string}` | `elected-${string}`>

export const originFaultKinds: Readonly<Record<OriginFault, FaultKind>> = {
  'origin-crash': ofOrigin({ weight: 2, ms: [200, 15_000] }, (server) => {
    if (!server.isUp) return undefined
    server.crash()
    return { what: 'the origin', end: () => server.start() }
  }),
  'origin-stop': ofOrigin({ weight: 2, ms: [50, 20_000] }, (server) => {
    server.stop()
    return { what: 'the origin', end: () => server.resume() }
  }),
  'origin-link-cut': ofOrigin({ weight: 3, ms: [50, 20_000] }, (server, random, { replicas }) => {
    const cut = replicas.filter(() => random.chance(0.6)).map(({ index }) => index)
    for (const replica of cut) server.network.block(replica)
    const end = () => {
      for (const replica of cut) server.network.unblock(replica)
    }
    return { what: `from replicas ${cut.join(', ')}`, end }
  }),
  'origin-link-slow': ofOrigin({ weight: 2, ms: [500, 10_000] }, (server, random, target) => {
    const most = random.pick([20, 300, 3_000])
    const replica = random.below(target.replicas.length)
    server.network.slow(replica, { least: 0, most })
    return { what: `replica ${replica} up to ${most} ms`, end: () => server.network.slow(replica) }
  }),
  'origin-reset': ofOrigin({ weight: 6, ms: [0, 0] }, (server, random) => {
    const share = random.pick([0.5, 1])
    const count = server.reset(() => random.chance(share))
    return count === 0 ? undefined : { what: `${count} requests` }
  }),
  'origin-compaction': ofOrigin({ weight: 3, ms: [0, 0] }, (server) => {
    server.compact()
    return { what: `at version ${server.model.version}` }
  }),
  'origin-overload': ofOrigin({ weight: 2, ms: [500, 15_000] }, (server, random) => {
    server.refuses = { share: random.pick([0.3, 0.9, 1]), how: 'overloaded' }
    return {
      what: `refuses ${server.refuses.share} of requests`,
      end: () => {
        server.refuses = undefined
      },
    }
  }),
  'origin-forbidden': ofOrigin({ weight: 0.7, ms: [500, 15_000] }, (server) => {
    server.refuses = { share: 1, how: 'forbidden' }
    return {
      what: 'refuses the credentials',
      end: () => {
        server.refuses = undefined
      },
    }
  }),
  'origin-repeats': ofOrigin({ weight: 1.5, ms: [500, 15_000] }, (server, random) => {
    server.repeatShare = random.pick([0.1, 0.7])
    return {
      what: 'watches send changes twice',
      end: () => {
        server.repeatShare = 0
      },
    }
  }),
  // Its clock stands still: when it goes on, it believes to be elected, as its successor does.
  'elected-suspend': {
    weight: 2,
    ms: [6_000, 60_000],
    begin: (target) => {
      const process = target.replicas[target.electedReplica ?? -1]?.process
      if (process?.isRunning !== true) return undefined
      process.suspend()
      return { what: process.name, end: () => process.resume() }
    },
  },
  'origin-restore': ofOrigin({ weight: 1, ms: [0, 0], perStorm: 6 }, (server, _, target) => {
    const { originBackup } = target
    const { model } = server
    if (originBackup === undefined || model.incarnation + 1 >= versionStride) return undefined
    const from = model.version
    if (!target.restoreOrigin(originBackup)) return undefined
    return { what: `from version ${from} to ${originBackup}` }
  }),
}
