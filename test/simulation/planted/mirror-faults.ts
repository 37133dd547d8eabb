/** Planted in src/mirror and in the write path of mirrors. */
import type { PlantedFault } from './planted-fault.ts'

const window = 'src/mirror/write-window.ts'
const follower = 'src/mirror/follower.ts'
const clusterMirror = 'src/mirror/cluster-mirror.ts'
const record = 'src/mirror/mirror-record.ts'
const writer = 'src/registry/mirrored-event.ts'
const versions = 'src/registry/origin-version.ts'

/** A run of a mirror needs more CPU than one of the event API. */
const minutesUsual = 2

const unfenced = {
  file: 'src/storage/etcd/batch-txn.ts',
  find: 'if (fence === undefined) return []',
  replace: 'if (fence !== undefined || fence === undefined) return []',
}
const uncompared = {
  file: writer,
  find: "if (order < 0) return 'older'",
  replace: '',
}

const faults: readonly Omit<PlantedFault, 'world'>[] = [
  {
    name: 'mirror-progress-before-ack',
    component: 'write window',
    breaks: 'positions',
    mistake: 'a write counts as stored when it is sent',
    patches: [
      {
        file: window,
        find: '    void this.#run(write, entry)\n',
        replace: `    entry.hasEnded = true
    this.#advance()
    void this.#run(write, entry)
`,
      },
    ],
  },
  {
    name: 'mirror-compares-no-versions',
    component: 'mirror writer',
    breaks: 'never backwards',
    mistake: 'what the origin sent last is stored, also when it is older',
    patches: [uncompared],
  },
  {
    name: 'mirror-writes-unfenced',
    component: 'fence',
    breaks: 'only the elected replica writes',
    mistake: 'the transaction does not compare the key of the election',
    patches: [unfenced],
  },
  {
    name: 'mirror-unfenced-and-uncompared',
    component: 'fence',
    breaks: 'only the elected replica writes',
    mistake: 'neither the election nor versions are compared',
    patches: [unfenced, uncompared],
  },
  {
    name: 'mirror-record-unfenced',
    component: 'mirror record',
    breaks: 'only the elected replica writes',
    mistake: 'the record is saved without a check that the writer is still elected',
    patches: [
      {
        file: record,
        find: "          { key: this.#leaderKey, target: 'modRevision', to: term.revision },\n",
        replace: '',
      },
    ],
  },
  {
    name: 'mirror-resumes-from-now-after-410',
    component: 'follower',
    breaks: 'positions',
    mistake: 'after 410 the watch begins at the newest version, without a list',
    patches: [
      {
        file: follower,
        find: '    counters.lists++\n',
        replace: `    counters.lists++
    if (this.#hasExpired) {
      this.#window.restart((await this.#page(1, undefined)).resourceVersion)
      this.#hasExpired = false
      return
    }
`,
      },
    ],
  },
  {
    name: 'mirror-drops-failed-writes',
    component: 'write window',
    breaks: 'positions',
    mistake: 'a write that etcd refused for a moment is not repeated',
    patches: [
      {
        file: window,
        find: '        onRetry(error)\n',
        replace: "        onRetry(error)\n        return 'older'\n",
      },
    ],
  },
  {
    name: 'mirror-ignores-the-epoch',
    component: 'origin version',
    breaks: 'mirrored exactly',
    mistake: 'versions of a restored origin are compared with those from before',
    patches: [
      {
        file: versions,
        find: 'if (one.epoch !== other.epoch) return one.epoch - other.epoch\n',
        replace: '',
      },
    ],
    faults: ['origin-restore', 'origin-reset'],
  },
  {
    name: 'mirror-resumes-another-stream',
    component: 'cluster mirror',
    breaks: 'positions',
    mistake: 'every stream resumes at the position of the first one',
    patches: [
      {
        file: clusterMirror,
        find: 'position: Object.hasOwn(positions, stream) ? positions[stream] : undefined,',
        replace: 'position: Object.values(positions)[0],',
      },
    ],
    faults: ['origin-reset', 'origin-overload', 'replica-crash'],
  },
  {
    name: 'mirror-loses-the-order-of-a-key',
    component: 'write window',
    breaks: 'deletes are repeated',
    mistake: 'writes of one event run at the same time, and one that is repeated comes last',
    patches: [
      {
        file: window,
        find: '    await this.#keys.enter(write.key)\n',
        replace: '    void this.#keys.enter(write.key)\n',
      },
    ],
    faults: ['members-crash', 'link-cut', 'reset', 'peer-cut'],
  },
  {
    name: 'mirror-bookmark-passes-pending-writes',
    component: 'write window',
    breaks: 'positions',
    mistake: 'a bookmark moves the position although writes before it have not ended',
    patches: [
      {
        file: window,
        find: '    const last = this.#entries.at(-1)\n',
        replace: '    const last = this.#entries.at(-1)\n    this.#moveTo(version)\n',
      },
    ],
  },
  {
    name: 'mirror-list-not-drained',
    component: 'follower',
    breaks: 'positions',
    mistake: 'the position is that of the list before all its items are stored',
    patches: [
      {
        file: follower,
        find: '    await this.#window.drained()\n    if (signal.aborted) return undefined\n',
        replace: '',
      },
    ],
    faults: ['link-slow', 'peer-slow', 'members-crash', 'origin-compaction', 'origin-reset'],
  },
  {
    name: 'mirror-keeps-the-first-uid',
    component: 'mirror writer',
    breaks: 'positions',
    mistake: 'an event that was created again under its name is taken for an old one',
    patches: [
      {
        file: writer,
        find: '  const order = compareOriginVersions(candidate.version, version)\n',
        replace: `  const order = compareOriginVersions(candidate.version, version)
  if (uid !== candidate.uid) return 'older'
`,
      },
    ],
  },
  {
    name: 'mirror-repeats-expiry-at-the-origin',
    component: 'mirror writer',
    breaks: 'nothing is deleted too early',
    mistake: 'an event that expired at the origin is deleted here too',
    patches: [
      {
        file: writer,
        find: 'return activeAt !== undefined && this.#now() - activeAt < originTtlMs - slackMs',
        replace: 'return activeAt !== undefined && slackMs > 0',
      },
    ],
    faults: [],
    minutes: 6,
    operations: 30,
  },
  {
    name: 'mirror-ignores-a-restored-origin',
    component: 'follower',
    breaks: 'mirrored exactly',
    mistake: 'a version of the origin that is lower than the position is not noticed',
    patches: [
      {
        file: follower,
        find: '    throw new OriginRestored(',
        replace: '    if (position === undefined) throw new OriginRestored(',
      },
    ],
    faults: ['origin-restore', 'origin-reset'],
  },
]

export const mirrorFaults: readonly PlantedFault[] = faults.map((fault) => ({
  minutes: minutesUsual,
  ...fault,
  world: 'mirror',
}))
