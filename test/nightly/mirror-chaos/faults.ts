/**
 * Faults by signals and by proxies. The schedule (kinds, order, durations) comes from the seed
 * alone. The victim of some kinds is the replica that mirrors when the fault begins.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { EtcdClient } from '../../../src/etcd/client.ts'
import { EtcdError } from '../../../src/etcd/errors.ts'
import type { FaultProxy, Fault as ProxyFault } from '../../support/fault-proxy.ts'
import type { Random } from '../../support/random.ts'
import { type FaultOf, faultsOf, schedule } from '../../worlds/faults.ts'
import type { Gap, OriginChange, TargetChange } from './history.ts'
import type { Replica } from './replica.ts'
import type { Site, Target } from './site.ts'

const shortMs = { least: 50, most: 650 }
/** Longer than the lease of the mirror, which is 10 s: another replica is elected. */
const longMs = { least: 11_000, most: 13_000 }
const hastyShare = 0.35
/** A lease, an election, and the start of a process on a slow machine. */
const workingMsMax = 25_000
const pollMs = 50
const compactMsMax = 20_000
const quietMs = { least: 20, most: 250 }
/** A proxy that is between two processes can fail in these ways. */
const partitions: readonly [ProxyFault, ...ProxyFault[]] = ['refuse', 'blackhole', 'cut-replies']

/**
 * How often each kind is in one round of the schedule. After those that end the lease without a
 * resignation nothing is mirrored for 10 s, so there are few of them.
 */
const round: Readonly<Record<FaultKind, number>> = {
  'elected-crash': 1,
  'elected-restart': 5,
  'replica-crash': 2,
  'replicas-crash': 1,
  'origin-crash': 4,
  'member-crash': 3,
  'origin-member-crash': 2,
  'elected-stop': 5,
  'elected-stop-past-lease': 1,
  'replica-stop': 1,
  'origin-stop': 3,
  'member-stop': 3,
  'origin-member-stop': 2,
  'origin-link-cut': 6,
  'elected-link-cut': 7,
  'elected-link-cut-past-lease': 1,
  'link-cut': 1,
  'origin-member-link-cut': 2,
  'origin-compaction': 2,
}
export type FaultKind = FaultOf<'mirror'>

export interface PlannedFault {
  readonly kind: FaultKind
  readonly ms: number
  readonly partition: ProxyFault
  /** The pause before it begins. */
  readonly quietMs: number
  /** The next fault does not wait until the mirror works again. */
  readonly isHasty: boolean
}

/** Some kinds only, if they are given. */
export function plan(
  count: number,
  random: Random,
  kinds: readonly FaultKind[] = faultsOf('mirror'),
): readonly PlannedFault[] {
  const perRound = Object.fromEntries(kinds.map((kind) => [kind, round[kind]]))
  return schedule<FaultKind>(count, random, perRound).map((kind) => {
    const { least, most } = kind.endsWith('-past-lease') ? longMs : shortMs
    return {
      kind,
      ms: Math.round(random.between(least, most)),
      partition: random.pick(partitions),
      quietMs: Math.round(random.between(quietMs.least, quietMs.most)),
      isHasty: random.chance(hastyShare),
    }
  })
}

export class Injector {
  readonly #site: Site
  /** Versions that the mirror could not watch. Complete when `settled` has resolved. */
  readonly gaps: Gap[] = []
  /** Replicas with a fault that lasts while others are injected. */
  readonly #taken = new Set<Target>()
  readonly #lasting: Promise<void>[] = []
  readonly #gapEnds: Promise<void>[] = []
  #isGivenUp = false
  readonly #onFailure: (error: unknown) => void

  constructor(site: Site, onFailure: (error: unknown) => void) {
    this.#site = site
    this.#onFailure = onFailure
  }

  /**
   * Resolves when the fault is repaired. Restarts of one replica of the target, and faults that
   * outlast a lease, are repaired later: others are injected meanwhile.
   */
  async inject(fault: PlannedFault): Promise<void> {
    await sleep(fault.quietMs)
    const { origin, originEtcd, targetEtcd, originToEtcd } = this.#site
    switch (fault.kind) {
      case 'elected-crash':
        return this.#last(await this.#mirror(), (it) => restart([it.replica], 'SIGKILL', fault.ms))
      case 'elected-restart':
        return this.#last(await this.#mirror(), (it) => restart([it.replica], 'SIGTERM', fault.ms))
      case 'replica-crash':
        return this.#last(await this.#other(), (it) => restart([it.replica], 'SIGKILL', fault.ms))
      case 'replicas-crash':
        return restart(
          this.#free().map(({ replica }) => replica),
          'SIGKILL',
          fault.ms,
        )
      case 'origin-crash':
        return restart([origin], 'SIGKILL', fault.ms)
      case 'member-crash':
      case 'origin-member-crash': {
        const member = fault.kind === 'origin-member-crash' ? originEtcd : targetEtcd
        await member.kill()
        await sleep(fault.ms)
        return member.start()
      }
      case 'elected-stop':
        return paused((await this.#mirror()).replica, fault.ms)
      case 'replica-stop':
        return paused((await this.#other()).replica, fault.ms)
      case 'origin-stop':
        return paused(origin, fault.ms)
      case 'member-stop':
        return paused(targetEtcd, fault.ms)
      case 'origin-member-stop':
        return paused(originEtcd, fault.ms)
      case 'origin-link-cut':
        return cut((await this.#mirror()).toOrigin, fault)
      case 'elected-link-cut':
        return cut((await this.#mirror()).toEtcd, fault)
      case 'link-cut':
        return cut((await this.#other()).toEtcd, fault)
      case 'origin-member-link-cut':
        return cut(originToEtcd, fault)
      case 'elected-stop-past-lease':
        return this.#last(await this.#mirror(), ({ replica }) => paused(replica, fault.ms))
      case 'elected-link-cut-past-lease':
        return this.#last(await this.#mirror(), ({ toEtcd }) => cut(toEtcd, fault))
      case 'origin-compaction':
        return this.#compactOrigin(fault)
    }
  }

  /**
   * Resolves when everything that the origin has now is mirrored, so that the next fault meets a
   * mirror that works; or after a while, since a lasting fault may prevent that.
   */
  async untilWorking(): Promise<void> {
    const { targetHistory } = this.#site
    const wanted = newest(this.#site.mirrored())
    const giveUpAt = performance.now() + workingMsMax
    while (newest(targetHistory.changes) < wanted && performance.now() < giveUpAt) {
      await sleep(pollMs)
    }
  }

  /** Resolves when all lasting faults are repaired. */
  async repaired(): Promise<void> {
    await Promise.all(this.#lasting)
  }

  /** Resolves when the ends of all gaps are known; those that are not are given up on demand. */
  async settled(isGivenUp: boolean): Promise<void> {
    this.#isGivenUp = isGivenUp
    await Promise.all(this.#gapEnds)
  }

  /**
   * The mirror is cut off while the origin is written to, compacted and restarted without its
   * memory of recent changes: the mirror cannot resume, and must list.
   */
  async #compactOrigin(fault: PlannedFault): Promise<void> {
    const { targets, origin, originHistory } = this.#site
    const report = await this.#site.report()
    for (const { toOrigin } of targets) toOrigin.set('refuse')
    await sleep(fault.ms)
    await originHistory.reached()
    const { revision } = originHistory
    await compact(originHistory.client, revision)
    await restart([origin], 'SIGKILL', 0)
    for (const { toOrigin } of targets) toOrigin.set('pass')
    this.noteGap(report?.position ?? 0, revision * 1000)
  }

  /** The gap ends where the mirror has listed: at the first position that it reports past it. */
  noteGap(after: number, reached: number): void {
    const ended = async (): Promise<void> => {
      while (!this.#isGivenUp) {
        const report = await this.#site.report()
        if (report !== undefined && report.position >= reached) {
          this.gaps.push({ after, upTo: report.position })
          return
        }
        await sleep(pollMs)
      }
    }
    this.#gapEnds.push(ended().catch(this.#onFailure))
  }

  #last(target: Target, fault: (target: Target) => Promise<void>): void {
    this.#taken.add(target)
    const done = fault(target)
      .catch(this.#onFailure)
      .finally(() => this.#taken.delete(target))
    this.#lasting.push(done)
  }

  /** Replicas of the target without a lasting fault. */
  #free(): readonly Target[] {
    return this.#site.targets.filter((target) => !this.#taken.has(target))
  }

  async #mirror(): Promise<Target> {
    return this.#pick((index, elected) => index === elected)
  }

  async #other(): Promise<Target> {
    return this.#pick((index, elected) => index !== elected)
  }

  async #pick(isWanted: (index: number, elected: number | undefined) => boolean): Promise<Target> {
    const { targets } = this.#site
    for (;;) {
      const elected = await this.#site.elected()
      const free = this.#free()
      const found = free.find((target) => isWanted(targets.indexOf(target), elected)) ?? free[0]
      if (found !== undefined) return found
      await sleep(100)
    }
  }
}

/** The newest version of a state; deletes are not always mirrored. */
function newest(changes: readonly (OriginChange | TargetChange)[]): number {
  return changes.reduce(
    (max, { type, version }) => (type === 'put' ? Math.max(max, version) : max),
    0,
  )
}

async function restart(
  replicas: readonly Replica[],
  signal: 'SIGKILL' | 'SIGTERM',
  ms: number,
): Promise<void> {
  await Promise.all(replicas.map((replica) => replica.end(signal)))
  await sleep(ms)
  await Promise.all(replicas.map((replica) => replica.start()))
}

async function compact(client: EtcdClient, revision: number): Promise<void> {
  try {
    await client.compact(revision, { timeoutMs: compactMsMax })
  } catch (error) {
    // Nothing was written since the last compaction.
    if (!(error instanceof EtcdError && error.kind === 'compacted')) throw error
  }
}

async function paused(victim: { pause(): void; resume(): void }, ms: number): Promise<void> {
  victim.pause()
  await sleep(ms)
  victim.resume()
}

async function cut(proxy: FaultProxy, { partition, ms }: PlannedFault): Promise<void> {
  proxy.set(partition)
  await sleep(ms)
  proxy.set('pass')
  // What was swallowed must not be missing in the middle of a connection.
  proxy.cut()
}
