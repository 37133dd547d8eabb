/** Planted in src/etcd: calls, connections, watch streams. */
import type { PlantedFault } from './planted-fault.ts'

export const etcdClientFaults: readonly PlantedFault[] = [
  {
    name: 'timeout-reported-as-refusal',
    component: 'call retries',
    breaks: 'refused write applied',
    mistake: 'a write whose deadline expired while it was in flight counts as not applied',
    patches: [
      {
        file: 'src/etcd/call-attempt.ts',
        find: 'mayHaveBeenApplied: method.isWrite,',
        replace: '',
      },
    ],
    faults: ['link-cut', 'link-cut-one-way', 'member-stop'],
  },
  {
    name: 'write-sent-twice-after-reset',
    component: 'call retries',
    breaks: 'refused write applied',
    mistake: 'a broken connection is taken for proof that the write did not reach etcd',
    patches: [
      {
        file: 'src/etcd/errors.ts',
        find: "const isExcluded = origin === 'server' &&",
        replace: "const isExcluded = origin === 'transport' || origin === 'server' &&",
      },
    ],
    faults: ['reset', 'link-slow'],
  },
  {
    name: 'full-reported-as-refusal',
    component: 'quota alarm',
    breaks: 'refused write applied',
    mistake: 'the error that etcd is full is taken for proof that the write was not applied',
    patches: [
      {
        file: 'src/etcd/errors.ts',
        find: "{ kind: 'no-space', neverApplied: false }",
        replace: "{ kind: 'no-space', neverApplied: true }",
      },
    ],
    faults: ['full'],
    minutes: 20,
  },
  {
    name: 'reads-without-majority',
    component: 'hedged reads',
    breaks: 'linearizability of reads',
    mistake: 'reads of the newest revision are serializable: a member responds from what it has',
    patches: [
      {
        file: 'src/etcd/protocol/hot-messages.ts',
        find: '  writer.number(4, request.revision ?? 0)',
        replace: `  writer.number(7, request.keysOnly === true ? 1 : 0)
  writer.number(4, request.revision ?? 0)`,
      },
    ],
  },
  {
    name: 'ready-connection-wakes-nobody',
    component: 'connections',
    breaks: 'progress',
    mistake: 'calls that wait for a connection are not woken when it is ready',
    patches: [
      {
        file: 'src/etcd/connection.ts',
        find: `    this.#state = state
    this.#options.onChange()`,
        replace: `    this.#state = state
    if (state !== 'ready') this.#options.onChange()`,
      },
    ],
  },
  {
    name: 'stream-repeats-last-revision',
    component: 'watch stream resume',
    breaks: 'watch duplicate',
    mistake: 'off by one: the last revision that was delivered counts as not delivered',
    patches: [
      {
        file: 'src/etcd/whole-revisions.ts',
        find: 'const isFresh = event.kv.modRevision > this.#delivered',
        replace: 'const isFresh = event.kv.modRevision >= this.#delivered',
      },
    ],
    faults: ['reset', 'link-cut'],
  },
  {
    name: 'progress-of-a-lagging-member',
    component: 'watch stream resume',
    breaks: 'watch order',
    mistake: 'progress of a member that is behind sets the delivered revision back',
    patches: [
      {
        file: 'src/etcd/whole-revisions.ts',
        find: 'if (this.#buffered.length > 0 || message.revision < this.#delivered) return undefined',
        replace: 'if (this.#buffered.length > 0) return undefined',
      },
    ],
    faults: ['reset', 'peer-slow', 'peer-cut'],
  },
  {
    name: 'bookmark-of-the-response-header',
    component: 'whole revisions',
    breaks: 'bookmark too early',
    mistake: 'a batch reports the newest revision of the member instead of its own last one',
    patches: [
      {
        file: 'src/etcd/whole-revisions.ts',
        find: 'return { revision: this.#delivered, events: complete }',
        replace: 'return { revision: message.revision, events: complete }',
      },
    ],
  },
  {
    name: 'fragment-taken-for-whole',
    component: 'whole revisions',
    breaks: 'whole transactions',
    mistake: 'a fragment is passed on at once, with a part of its last revision',
    patches: [
      {
        file: 'src/etcd/whole-revisions.ts',
        find: 'const whole = message.fragment ? lastRevisionStart(events) : events.length',
        replace: 'const whole = events.length',
      },
    ],
  },
  {
    name: 'lost-connection-still-vouched-for',
    component: 'connection numbers',
    breaks: 'linearizability of reads',
    mistake: 'a verified stream vouches for connections that were made after it was opened',
    patches: [
      {
        file: 'src/etcd/watch-stream.ts',
        find: 'return session?.isVerified === true ? session.newestAtOpen : 0',
        replace: 'return session?.isVerified === true ? this.#members.newest : 0',
      },
    ],
    faults: ['restore', 'link-cut', 'link-cut-one-way', 'replica-stop'],
  },
  {
    name: 'missing-previous-value-taken-for-compacted',
    component: 'watch stream',
    breaks: 'watches end as compacted only when history is lost',
    mistake: 'a change that comes without its previous value is passed on, although etcd has it',
    patches: [
      {
        file: 'src/etcd/watch-stream.ts',
        find: 'if (lacking === undefined) return',
        replace: 'return',
      },
    ],
    operations: 150,
  },
  {
    name: 'previous-value-given-up',
    component: 'watch stream',
    breaks: 'watches end as compacted only when history is lost',
    mistake: 'a change that lacks its previous value on two streams is passed on, as if compacted',
    patches: [
      {
        file: 'src/etcd/watch-stream.ts',
        find: '  #compactedAt: number | undefined\n',
        replace: '  #compactedAt: number | undefined\n  #lackingAt = 0\n',
      },
      {
        file: 'src/etcd/watch-stream.ts',
        find: 'if (lacking === undefined) return',
        replace: `if (lacking === undefined || lacking.kv.modRevision === this.#lackingAt) return
    this.#lackingAt = lacking.kv.modRevision`,
      },
    ],
  },
]
