/** Planted in the way of writes: group commit, versions, updates, availability, the quota. */
import type { PlantedFault } from './planted-fault.ts'

const groupCommit = 'src/storage/etcd/group-commit.ts'
const batchTxn = 'src/storage/etcd/batch-txn.ts'
const updater = 'src/storage/etcd/optimistic-updater.ts'

export const writeFaults: readonly PlantedFault[] = [
  {
    name: 'batch-retried-although-maybe-applied',
    component: 'group commit',
    breaks: 'refused write applied',
    mistake: 'a batch is queued again without a check whether it may have been applied',
    patches: [
      {
        file: groupCommit,
        find: 'if (!error.mayHaveBeenApplied && isRetryable(error, batch.length)) {',
        replace: 'if (isRetryable(error, batch.length)) {',
      },
    ],
    faults: ['reset', 'link-slow'],
  },
  {
    name: 'outcome-of-the-whole-batch',
    component: 'group commit',
    breaks: 'acknowledged write lost',
    mistake: 'the result of the whole transaction is read as the result of each operation',
    patches: [
      {
        file: batchTxn,
        find: 'if (!own.succeeded) return { applied: false, current: foundBy(own.results) }',
        replace: 'if (!result.succeeded) return { applied: false, current: foundBy(own.results) }',
      },
    ],
  },
  {
    name: 'finished-key-stays-busy',
    component: 'per-key order',
    breaks: 'progress',
    mistake: 'a key is not removed from the table of busy keys: its next write is never sent',
    patches: [
      {
        file: groupCommit,
        find: 'if (nextOnKey === undefined) this.#forget(operation.key)',
        replace: 'if (nextOnKey === undefined) return',
      },
    ],
  },
  {
    name: 'queued-bytes-leak',
    component: 'group commit',
    breaks: 'unbounded queue',
    mistake: 'the bytes of an operation that leaves the queue stay counted',
    patches: [
      {
        file: groupCommit,
        find: `    this.#queuedOperations--
    this.#queuedBytes -= first.bytes`,
        replace: `    this.#queuedOperations--`,
      },
    ],
  },
  {
    name: 'writes-share-an-index',
    component: 'versions',
    breaks: 'unique versions',
    mistake: 'the index of a put is not passed on, so that all puts of a batch have index 0',
    patches: [
      {
        file: batchTxn,
        find: '...branches(operation, writtenAtMs, index),',
        replace: '...branches(operation, writtenAtMs, 0),',
      },
    ],
  },
  {
    name: 'delete-version-by-position',
    component: 'versions',
    breaks: 'unique versions',
    mistake: 'a delete is acknowledged with its position in the batch as index',
    patches: [
      {
        file: batchTxn,
        find: '? numbering.delete(result.revision)',
        replace: '? numbering.put(result.revision, index)',
      },
    ],
  },
  {
    name: 'create-overwrites',
    component: 'group commit',
    breaks: 'linearizability of writes',
    mistake: 'an expected revision of 0 is taken for "no condition"',
    patches: [
      {
        file: batchTxn,
        find: "compare: [{ key, target: 'modRevision', to: expected }, ...fenceCompares(fence)],",
        replace: "compare: expected ? [{ key, target: 'modRevision', to: expected }] : [],",
      },
    ],
  },
  {
    name: 'decision-reused-on-retry',
    component: 'registry',
    breaks: 'linearizability of writes',
    mistake: 'an update that met another write repeats its first decision on the newer state',
    patches: [
      {
        file: 'src/registry/changes.ts',
        find: 'last = this.#decided(key, current, options, decide)',
        replace: 'last ??= this.#decided(key, current, options, decide)',
      },
    ],
  },
  {
    name: 'retry-from-stale-state',
    component: 'optimistic updater',
    breaks: 'linearizability of writes',
    mistake: 'a refused update is repeated with the new revision and the old body',
    patches: [
      {
        file: updater,
        find: 'observed = { stored: find(ended.current, key), isConfirmed: true, connectionMax }',
        replace: `const newer = find(ended.current, key)
        const stored =
          newer && observed.stored ? withVersion(observed.stored, newer.version) : newer
        observed = { stored, isConfirmed: true, connectionMax }`,
      },
    ],
  },
  {
    name: 'refusal-by-a-guess',
    component: 'optimistic updater',
    breaks: 'linearizability of writes',
    mistake: 'a write is refused because of the state in memory, which may be out of date',
    patches: [
      {
        file: updater,
        find: 'if (observed.isConfirmed) throw error',
        replace: 'if (observed.stored !== undefined || observed.isConfirmed) throw error',
      },
    ],
  },
  {
    name: 'failed-update-keeps-its-key',
    component: 'optimistic updater',
    breaks: 'progress',
    mistake: 'an update that fails does not let the next update of the same key begin',
    patches: [
      {
        file: updater,
        find: '      this.#queue.leave(etcdKey, left)',
        replace: '      if (left !== undefined) this.#queue.leave(etcdKey, left)',
      },
    ],
  },
  {
    name: 'outage-never-ends',
    component: 'availability detection',
    breaks: 'progress',
    mistake: 'the signal of the outage is not replaced when etcd responds again',
    patches: [
      {
        file: 'src/storage/etcd/etcd-availability.ts',
        find: `    const seconds = Math.round(this.outageMs / 100) / 10
    this.#outage = new AbortController()`,
        replace: '    const seconds = Math.round(this.outageMs / 100) / 10',
      },
    ],
    faults: ['members-crash', 'link-cut', 'peer-cut'],
  },
  {
    name: 'queued-writes-forgotten-in-outage',
    component: 'availability detection',
    breaks: 'progress',
    mistake: 'writes that an outage rejects are removed from the queue, but their callers wait on',
    patches: [
      {
        file: groupCommit,
        find: `    first.step?.end(error)
    first.reject(error)`,
        replace: '    first.step?.end(error)',
      },
    ],
    faults: ['members-crash', 'link-cut', 'peer-cut', 'full'],
  },
  {
    name: 'alarm-never-ends',
    component: 'quota alarm',
    breaks: 'progress',
    mistake: 'the poll that finds no alarm compares the wrong way round and keeps refusing puts',
    patches: [
      {
        file: 'src/storage/etcd/quota-alarm.ts',
        find: 'else if (fullCount === this.#fullCount) this.#onAlarmOff()',
        replace: 'else if (fullCount > this.#fullCount) this.#onAlarmOff()',
      },
    ],
    faults: ['full'],
  },
  {
    name: 'prefix-check-remembers-a-failure',
    component: 'prefix check',
    breaks: 'progress',
    mistake: 'an error of an earlier attempt prevents the check from passing',
    patches: [
      {
        file: 'src/storage/etcd/prefix-check.ts',
        find: 'this.#hasPassed = !this.#hasFailed && !signal.aborted',
        replace: 'this.#hasPassed = this.#lastError === undefined && !signal.aborted',
      },
    ],
    faults: ['replica-restart', 'link-cut'],
  },
]
