import type { FaultTarget } from './kinds.ts'

const disarmAgainMs = [2_000, 5_000, 8_000]

/** An operator repeats the command when it fails, for example because there is no leader. */
function disarmUntilDone(target: FaultTarget): void {
  target.cluster.disarm()
  for (const ms of disarmAgainMs) target.after(ms, () => target.cluster.disarm())
}

/** Ends all faults: the world is as it was at the beginning, apart from the wall clocks. */
export function healWorld(target: FaultTarget): void {
  const { replicas, cluster, network, peers, setting } = target
  peers.heal()
  target.origin?.heal()
  target.bucket?.heal()
  for (const [index, member] of cluster.members.entries()) {
    if (!member.isUp) cluster.restart(index)
    network.memberResumed(index)
    cluster.resume(index)
    for (const replica of replicas) {
      network.delay(replica.index, index)
      network.unblock(replica.index, index, 'toMember')
      network.unblock(replica.index, index, 'toReplica')
    }
  }
  cluster.networkChanged()
  target.noteFull()
  cluster.setQuota(setting.quotaBytes)
  disarmUntilDone(target)
  for (const replica of replicas) {
    const { process } = replica
    replica.engines?.resume()
    if (process === undefined) replica.start()
    else {
      process.loadMs = 0
      process.resume()
    }
  }
}
