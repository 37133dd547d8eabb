/**
 * What can go wrong, and what it is in each world:
 *
 * - `simulated`: test/simulation, with a simulated etcd, network and time
 * - `chaos`: test/nightly/chaos, with three real etcd members and replicas in the process of the test
 * - `mirror`: test/nightly/mirror-chaos, with real processes, and proxies between them
 *
 * A world implements each of its faults, and no others: the types see to it. The elected replica is
 * the one that mirrors, or writes the archive; the origin is what is mirrored.
 */
import type { Random } from '../support/random.ts'

export const faults = {
  'replica-crash': {
    simulated: 'ends its process',
    chaos: 'drops its connections and state',
    mirror: 'SIGKILL to one that is not elected',
  },
  'replica-restart': { simulated: 'closes the engine and ends the process' },
  'replica-stop': { simulated: 'stops its timers', mirror: 'SIGSTOP to one that is not elected' },
  'replica-suspend': { simulated: 'stops its timers and its monotonic clock' },
  'replica-load': { simulated: 'makes each event of its loop take time' },
  'replicas-crash': { mirror: 'SIGKILL to all' },
  'clock-jump': { simulated: 'moves the wall clock of a replica' },
  'member-crash': {
    simulated: 'ends the process of a member',
    chaos: 'SIGKILL',
    mirror: 'SIGKILL to the only member of the target',
  },
  'leader-crash': { chaos: 'SIGKILL, and starts it again at once' },
  'majority-crash': { chaos: 'SIGKILL to two of three members' },
  'members-crash': { simulated: 'ends all processes', chaos: 'SIGKILL to all members' },
  'member-stop': {
    simulated: 'holds back its messages and timers',
    chaos: 'SIGSTOP',
    mirror: 'SIGSTOP to the only member of the target',
  },
  'majority-stop': { chaos: 'SIGSTOP to two of three members' },
  'leader-move': { simulated: 'makes another member the leader' },
  'disk-slow': { chaos: 'delays each fsync of the leader' },
  full: { simulated: 'uses up the space quota' },
  restore: { simulated: 'restores etcd from a snapshot' },
  'restore-bumped': { simulated: 'restores etcd with --bump-revision and --mark-compacted' },
  'link-cut': {
    simulated: 'loses messages between replicas and members',
    chaos: 'drops packets between a member and all replicas',
    mirror: 'cuts a replica that is not elected off from etcd',
  },
  'link-cut-one-way': { simulated: 'loses messages in one direction' },
  'link-slow': { simulated: 'delays messages between replicas and members' },
  reset: {
    simulated: 'resets connections between replicas and members',
    chaos: 'kills the sockets to all members',
  },
  'replies-lost': { chaos: 'drops packets to replicas, then kills the sockets' },
  'peer-cut': {
    simulated: 'loses messages between members',
    chaos: 'drops packets between a member and its peers',
  },
  'peer-cut-one-way': { chaos: 'drops packets from a member to its peers' },
  'peer-link-cut': { chaos: 'drops packets between two members' },
  'peer-slow': { simulated: 'delays messages between members' },
  'member-cut-off': { chaos: 'drops packets between a member and everybody' },
  'elected-crash': { mirror: 'SIGKILL' },
  'elected-restart': { mirror: 'SIGTERM' },
  'elected-stop': { mirror: 'SIGSTOP' },
  'elected-stop-past-lease': { mirror: 'SIGSTOP until another replica is elected' },
  'elected-suspend': { simulated: 'stops its timers and its monotonic clock' },
  'elected-link-cut': { mirror: 'cuts it off from etcd' },
  'elected-link-cut-past-lease': { mirror: 'cuts it off from etcd until another is elected' },
  'origin-crash': { simulated: 'ends all requests and refuses new ones', mirror: 'SIGKILL' },
  'origin-stop': { simulated: 'answers nothing', mirror: 'SIGSTOP' },
  'origin-link-cut': {
    simulated: 'loses messages between replicas and the origin',
    mirror: 'cuts the elected replica off from the origin',
  },
  'origin-link-slow': { simulated: 'delays messages of a replica' },
  'origin-reset': { simulated: 'resets connections' },
  'origin-overload': { simulated: 'refuses some requests with 429' },
  'origin-forbidden': { simulated: 'refuses the credentials' },
  'origin-repeats': { simulated: 'sends changes twice in watches' },
  'origin-restore': { simulated: 'goes back to an earlier version' },
  'origin-compaction': {
    simulated: 'forgets its history',
    mirror: 'compacts its etcd and restarts it while the mirror cannot reach it',
  },
  'origin-member-crash': { mirror: 'SIGKILL to the etcd of the origin' },
  'origin-member-stop': { mirror: 'SIGSTOP to the etcd of the origin' },
  'store-refuses': { simulated: 'refuses some or all requests to the store of the archive' },
  'store-stop': { simulated: 'answers nothing' },
  'store-slow': { simulated: 'delays requests and answers' },
  'store-link-cut': { simulated: 'loses messages between replicas and the store' },
  'store-full': { simulated: 'refuses puts' },
  'store-lies': { simulated: 'loses or damages an object that it says it has' },
  'engine-crash': { simulated: 'ends the processes of a replica that write files' },
  'engine-stop': { simulated: 'stops the processes of a replica that write files' },
  'origin-member-link-cut': { mirror: 'cuts the origin off from its etcd' },
} as const

export type WorldName = 'simulated' | 'chaos' | 'mirror'

type Faults = typeof faults

/** The faults of a world. */
export type FaultOf<World extends WorldName> = {
  [Name in keyof Faults]: World extends keyof Faults[Name] ? Name : never
}[keyof Faults]

export function faultsOf<World extends WorldName>(world: World): readonly FaultOf<World>[] {
  const names = Object.keys(faults) as (keyof Faults)[]
  return names.filter((name): name is FaultOf<World> => world in faults[name])
}

/**
 * The requested number of faults, round by round, each round in another order. A fault that a round
 * has several times comes once in the first half, so that a short schedule has all of them.
 */
export function schedule<Name extends string>(
  count: number,
  random: Random,
  perRound: Readonly<Partial<Record<Name, number>>>,
): readonly Name[] {
  const round = Object.entries(perRound) as [Name, number][]
  const names: Name[] = []
  while (names.length < count) {
    const next = round
      .flatMap(([name, times]) =>
        Array.from({ length: times }, (_, index) => {
          return { name, place: random.next() + (index === 0 ? 0 : 1) }
        }),
      )
      .sort((one, other) => one.place - other.place)
    names.push(...next.map(({ name }) => name))
  }
  return names.slice(0, count)
}
