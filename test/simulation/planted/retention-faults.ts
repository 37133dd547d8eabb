/** Planted in src/retention: ages, the sweeper, leadership, compaction. */
import type { PlantedFault } from './planted-fault.ts'

const sweeper = 'src/retention/sweeper.ts'
const timeline = 'src/retention/timeline.ts'
const ageRecord = 'src/retention/age-record.ts'
const compactor = 'src/retention/compactor.ts'
const leadership = 'src/election/leadership.ts'

export const retentionFaults: readonly PlantedFault[] = [
  {
    name: 'age-from-the-note-before',
    component: 'timeline',
    breaks: 'early expiry',
    mistake: 'off by one: an event counts as old as the note that was taken before it was written',
    patches: [
      {
        file: timeline,
        find: 'return this.#notes[next]?.at ?? this.#clock.now()',
        replace: 'return this.#notes[Math.max(0, next - 1)]?.at ?? this.#clock.now()',
      },
    ],
    faults: [],
    minutes: 4,
  },
  {
    name: 'record-dated-at-the-read-before',
    component: 'age record',
    breaks: 'early expiry',
    mistake: 'the age record counts as written when this replica read the one before it',
    patches: [
      {
        file: ageRecord,
        find: 'const writtenBy = clock.now()\n    // The read before',
        replace: 'const writtenBy = before ?? clock.now()\n    // The read before',
      },
    ],
    faults: ['replica-crash', 'replica-restart'],
    minutes: 6,
  },
  {
    name: 'lease-time-rounded-up',
    component: 'age record',
    breaks: 'early expiry',
    mistake: 'wrong sign: the second that etcd rounds off is added instead of taken off',
    patches: [
      {
        file: ageRecord,
        find: 'return Math.max(0, lease.grantedTtlSeconds - lease.ttlSeconds - 1) * 1000',
        replace: 'return Math.max(0, lease.grantedTtlSeconds - lease.ttlSeconds + 1) * 1000',
      },
    ],
    faults: ['replica-crash', 'replica-restart'],
    minutes: 6,
  },
  {
    name: 'record-of-a-past-leader',
    component: 'age record',
    breaks: 'only the leader works',
    mistake: 'the age record is written without a check that the writer still leads',
    patches: [
      {
        file: ageRecord,
        find: "          { key: this.#leaderKey, target: 'modRevision', to: term.revision },\n",
        replace: '',
      },
    ],
    faults: ['replica-stop', 'link-cut', 'link-slow', 'replica-crash'],
  },
  {
    name: 'age-record-never-read',
    component: 'age record',
    breaks: 'late expiry',
    mistake: 'a new leader does not learn from the record of its predecessor',
    patches: [
      {
        file: ageRecord,
        find: '    timeline.learn(notesAt(ages, writtenBy))\n    this.#wallClocks',
        replace: '    this.#wallClocks',
      },
      {
        file: ageRecord,
        find: 'if (ages !== undefined) timeline.learn(notesAt(ages, writtenBy))',
        replace: '',
      },
    ],
    faults: ['replica-crash'],
    minutes: 4,
  },
  {
    name: 'due-event-deleted-whatever-its-version',
    component: 'sweeper',
    breaks: 'early expiry',
    mistake: 'the sweeper deletes an event by its key, although it was changed since',
    patches: [
      {
        file: 'src/retention/guarded-delete.ts',
        find: 'if (current.version !== event.version) throw new Changed(current)',
        replace: 'if (current.version < event.version) throw new Changed(current)',
      },
    ],
    faults: ['link-slow', 'link-cut', 'replica-load', 'peer-slow'],
  },
  {
    name: 'changed-event-not-queued-again',
    component: 'sweeper',
    breaks: 'no expiry',
    mistake: 'an event that was changed before it was due is not queued with its new due time',
    patches: [
      {
        file: sweeper,
        find: '      this.#requeue(queue, outcome.changed)\n',
        replace: '',
      },
    ],
    faults: [],
    minutes: 2,
  },
  {
    name: 'failed-delete-not-queued-again',
    component: 'sweeper',
    breaks: 'no expiry',
    mistake: 'an event whose delete failed is not queued again',
    patches: [
      {
        file: sweeper,
        find: `      queue.push(event)
      return failed`,
        replace: '      return failed',
      },
    ],
    faults: ['members-crash', 'link-cut', 'peer-cut', 'reset'],
    minutes: 4,
  },
  {
    name: 'heap-sifts-down-once',
    component: 'expiry queue',
    breaks: 'late expiry',
    mistake: 'the last entry of the heap moves down by one level only, and hides what is below',
    patches: [
      {
        file: 'src/retention/expiry-queue.ts',
        find: 'while (child < this.#size && this.#dueAt(child) < last.dueAt) {',
        replace: 'if (child < this.#size && this.#dueAt(child) < last.dueAt) {',
      },
    ],
    faults: [],
    minutes: 8,
  },
  {
    name: 'feed-forgets-recreated-events',
    component: 'due feed',
    breaks: 'no expiry',
    mistake: 'events that are created after the list are not queued',
    patches: [
      {
        file: 'src/retention/due-feed.ts',
        find: `    if (previous === undefined) {
      this.#push(queue, stored)
      return 1`,
        replace: `    if (previous === undefined) {
      return 1`,
      },
    ],
    faults: [],
    minutes: 2,
  },
  {
    name: 'leads-only-once',
    component: 'leadership',
    breaks: 'no expiry',
    mistake: 'a replica that has lost its term does not campaign again',
    patches: [
      {
        file: leadership,
        find: '      await pause(retryFirstMs, signal)\n    }',
        replace: '      return\n    }',
      },
    ],
    faults: ['link-cut', 'replica-stop', 'peer-cut'],
    minutes: 4,
  },
  {
    name: 'campaign-without-compare',
    component: 'leadership',
    breaks: 'one leader at a time',
    mistake: 'the key of the leader is put without a check that it is still free',
    patches: [
      {
        file: leadership,
        find: "compare: [{ key: this.#key, target: 'lease', to: 0n }],",
        replace: 'compare: [],',
      },
    ],
  },
  {
    name: 'compacts-the-present',
    component: 'compactor',
    breaks: 'compaction too early',
    mistake: 'a compaction removes what is history now, instead of one interval ago',
    patches: [
      {
        file: compactor,
        find: 'const version = timeline.versionAt(clock.now() - intervalMs)',
        replace: 'const version = timeline.versionAt(clock.now())',
      },
    ],
    faults: [],
  },
  {
    name: 'compaction-stuck-after-a-lost-reply',
    component: 'compactor',
    breaks: 'compaction never',
    mistake: 'a compaction that etcd has done already stays pending and is tried for ever',
    patches: [
      {
        file: compactor,
        find: "if (kind !== 'compacted' && kind !== 'future-revision') throw error",
        replace: "if (kind !== 'future-revision') throw error",
      },
    ],
    faults: ['reset', 'link-slow', 'link-cut-one-way'],
    minutes: 6,
  },
  {
    name: 'announcement-never-due',
    component: 'compactor',
    breaks: 'compaction never',
    mistake:
      'the revision at which the announcement was read is taken for that of the announcement',
    patches: [
      {
        file: compactor,
        find: 'return Math.max(this.#announcedAt, this.#unannouncedAt)',
        replace: 'return Math.max(this.#announcedAt, this.#announcementReadAt)',
      },
    ],
    faults: [],
    minutes: 2,
  },
]
