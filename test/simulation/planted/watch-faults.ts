/** Planted in src/cache/watch and in the watches of etcd: the ring, cursors, fan-out, catching up. */
import type { PlantedFault } from './planted-fault.ts'

const cursor = 'src/cache/watch/cursor.ts'
const fanOut = 'src/cache/watch/fan-out.ts'
const history = 'src/cache/watch/history.ts'

export const watchFaults: readonly PlantedFault[] = [
  {
    name: 'ring-overwrites-unread-changes',
    component: 'ring',
    breaks: 'unbounded ring',
    mistake: 'off by one: the ring takes one change more than it can hold',
    patches: [
      {
        file: history,
        find: 'if (this.#head - this.#tail === this.#bounds.changesMax) this.#drop()',
        replace: 'if (this.#head - this.#tail > this.#bounds.changesMax) this.#drop()',
      },
    ],
    minutes: 20,
  },
  {
    name: 'ring-start-not-moved',
    component: 'ring',
    breaks: 'watch gap',
    mistake: 'an evicted change does not move the version from which on the ring is complete',
    patches: [
      {
        file: history,
        find: '    this.#start = item.stored.version\n',
        replace: '',
      },
    ],
    minutes: 20,
  },
  {
    name: 'catch-up-jumps-to-the-ring',
    component: 'ring fallback',
    breaks: 'watch gap',
    mistake: 'after one step of catching up, the cursor continues at the start of the ring',
    patches: [
      {
        file: cursor,
        find: '    if (isAfter(batch.version, this.#version)) this.#version = batch.version\n',
        replace:
          '    const until = this.#options.history.start\n' +
          '    this.#version = isAfter(batch.version, until) ? batch.version : until\n',
      },
    ],
    minutes: 20,
  },
  {
    name: 'catch-up-in-the-ring-jumps',
    component: 'catching up',
    breaks: 'watch gap',
    mistake: 'after one step in the ring, a watch that is far behind continues at its end',
    patches: [
      {
        file: 'src/cache/watch/catch-up-reader.ts',
        find: '    return { items, version }\n',
        replace:
          '    return { items, version: isAfter(version, from) ? history.version : version }\n',
      },
    ],
    minutes: 20,
  },
  {
    name: 'catch-up-repeats-a-revision',
    component: 'ring fallback',
    breaks: 'watch duplicate',
    mistake: 'a watch of etcd that begins in the middle of a transaction repeats its beginning',
    patches: [
      {
        file: 'src/storage/etcd/etcd-watch.ts',
        find: 'return isInScope(scope, change.key) && isAfter(change.version, from)',
        replace: 'return isInScope(scope, change.key) && from !== change.version',
      },
    ],
    minutes: 20,
  },
  {
    name: 'resume-skips-rest-of-revision',
    component: 'versions',
    breaks: 'watch resume',
    mistake: 'a watch from a change continues after the whole transaction of that change',
    patches: [
      {
        file: 'src/storage/resource-version.ts',
        find: 'return isWhole ? revision + 1 : Math.max(1, revision)',
        replace: 'return revision + 1',
      },
    ],
    minutes: 20,
  },
  {
    name: 'resume-in-ring-skips-rest-of-revision',
    component: 'ring',
    breaks: 'watch resume',
    mistake: 'a position in the ring is looked up by revision instead of by version',
    patches: [
      {
        file: history,
        find: 'if (isAfter(this.#at(middle).stored.version, version)) high = middle',
        replace:
          'if (revisionOf(this.#at(middle).stored.version) > revisionOf(version)) high = middle',
      },
    ],
    minutes: 20,
  },
  {
    name: 'delivered-version-not-noted',
    component: 'cursor',
    breaks: 'watch duplicate',
    mistake: 'a cursor does not note the version of a batch that the fan-out delivered',
    patches: [
      {
        file: cursor,
        find: '    this.#version = batch.version\n    this.#progressRequestedAt = undefined',
        replace: '    this.#progressRequestedAt = undefined',
      },
    ],
    minutes: 20,
  },
  {
    name: 'recheck-forgets-to-wait',
    component: 'cursor',
    breaks: 'watch gap',
    mistake: 'a cursor that is told to look, and finds nothing, does not wait again',
    patches: [
      {
        file: cursor,
        find: 'else if (!this.#isEnded) this.#wait()',
        replace: 'else if (!this.#isEnded && this.#position === undefined) this.#wait()',
      },
    ],
    faults: ['link-slow', 'reset'],
  },
  {
    name: 'bookmark-of-undelivered-changes',
    component: 'cursor',
    breaks: 'bookmark too early',
    mistake: 'progress is reported up to the newest change instead of the last delivered one',
    patches: [
      {
        file: cursor,
        find: 'this.#advance(position, roundEnd.version)',
        replace: 'this.#advance(position, history.version)',
      },
    ],
    faults: ['replica-load'],
    minutes: 20,
  },
  {
    name: 'watch-survives-a-reload',
    component: 'cursor',
    breaks: 'watch gap',
    mistake: 'a watch goes on after memory was loaded again, although changes may be missing',
    patches: [
      {
        file: cursor,
        find: 'if (this.#restarts !== undefined && this.#restarts !== history.restarts) {',
        replace: 'if (this.#restarts !== undefined && this.#restarts > history.restarts) {',
      },
    ],
    faults: ['restore-bumped'],
    minutes: 3,
  },
  {
    name: 'ended-watch-stays-registered',
    component: 'fan-out',
    breaks: 'unbounded queue',
    mistake: 'a watch that ends is not removed from the fan-out',
    patches: [
      {
        file: cursor,
        find: '    this.#options.fanOut.leave(this)\n',
        replace: '',
      },
    ],
    minutes: 20,
  },
  {
    name: 'fan-out-ignores-floor',
    component: 'fan-out rounds',
    breaks: 'watch duplicate',
    mistake: 'a waiting watcher gets changes from before the version that it began with',
    patches: [
      {
        file: fanOut,
        find: 'if (watcher.position <= first && isAfter(from, watcher.floor)) {',
        replace: 'if (watcher.position <= first) {',
      },
    ],
  },
  {
    name: 'fan-out-skips-a-round',
    component: 'fan-out rounds',
    breaks: 'watch gap',
    mistake: 'a watcher that cannot share the batch of a round is told that it got it',
    patches: [
      {
        file: fanOut,
        find: `        } else watcher.recheck(before)`,
        replace: `        } else watcher.recheck(end)`,
      },
    ],
    minutes: 20,
  },
  {
    name: 'change-during-a-round-not-dispatched',
    component: 'fan-out rounds',
    breaks: 'watch gap',
    mistake: 'a change that arrives during a round is not followed by another round',
    patches: [
      {
        file: fanOut,
        find: 'if (round.end.position === this.#history.head) return',
        replace: 'if (round.end.position <= this.#history.head) return',
      },
    ],
    faults: ['replica-load'],
  },
]
