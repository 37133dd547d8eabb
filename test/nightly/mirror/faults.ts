/** What goes wrong during the test, one after the other. */
import { setTimeout as sleep } from 'node:timers/promises'
import { replicaIndexes, type Site } from './site.ts'
import type { Writers } from './writers.ts'

/** Longer than the lease of an elected replica. */
const pastLeaseMs = 14_000
const shortMs = 4_000
const compactedMs = 6_000

export const faultKinds = [
  'API server restarted',
  'mirroring replica killed',
  'API server killed',
  'mirroring replica paused past its lease',
  'origin compacted',
  'etcd of tidings killed',
  'mirroring replica restarted',
  'API server paused',
  'etcd of tidings paused',
  'etcd of the origin killed',
] as const
export type FaultKind = (typeof faultKinds)[number]

export async function inject(kind: FaultKind, site: Site, writers: Writers): Promise<void> {
  const { replicas } = site
  const { api } = site.kubernetes
  switch (kind) {
    case 'API server restarted':
    case 'API server killed':
      await api.kill(kind === 'API server killed' ? 'SIGKILL' : 'SIGTERM')
      await sleep(Math.random() * shortMs)
      await api.run()
      return
    case 'API server paused':
      api.signal('SIGSTOP')
      await sleep(shortMs)
      api.signal('SIGCONT')
      return
    case 'etcd of the origin killed':
      await api.etcd.member(0).kill()
      await api.etcd.member(0).start()
      return
    case 'mirroring replica killed':
    case 'mirroring replica restarted': {
      const index = await site.someLeader()
      const server = replicas.server(index)
      server.kill(kind === 'mirroring replica killed' ? 'SIGKILL' : 'SIGTERM')
      await server.ended
      await replicas.startOne(index)
      return
    }
    case 'mirroring replica paused past its lease': {
      const server = replicas.server(await site.someLeader())
      server.kill('SIGSTOP')
      await sleep(pastLeaseMs)
      server.kill('SIGCONT')
      return
    }
    case 'etcd of tidings killed':
      await replicas.etcd.member(0).kill()
      await sleep(Math.random() * shortMs)
      await replicas.etcd.member(0).start()
      return
    case 'etcd of tidings paused':
      replicas.etcd.member(0).pause()
      await sleep(shortMs)
      replicas.etcd.member(0).resume()
      return
    case 'origin compacted':
      await compactWhileDown(site, writers)
      return
  }
}

/**
 * Compacts changes away that no mirror has read: they must list again. What is deleted in such a
 * gap cannot be known to any mirror, so nothing is deleted from before it until after it.
 */
async function compactWhileDown(site: Site, writers: Writers): Promise<void> {
  const { replicas } = site
  writers.mayDelete = false
  try {
    await site.untilCaughtUp()
    await Promise.all(
      replicaIndexes.map((index) => {
        replicas.server(index).kill('SIGKILL')
        return replicas.server(index).ended
      }),
    )
    await sleep(compactedMs)
    await site.compactOrigin()
    await Promise.all(replicaIndexes.map((index) => replicas.startOne(index)))
    await site.untilCaughtUp()
  } finally {
    writers.mayDelete = true
  }
}
