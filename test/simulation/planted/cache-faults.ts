/** Planted in src/cache: loading, following, the memory, its indexes and retained states. */
import type { PlantedFault } from './planted-fault.ts'

const memory = 'src/cache/memory/memory.ts'
const reflector = 'src/cache/reflector.ts'
const loader = 'src/cache/memory-loader.ts'
const scan = 'src/etcd/range-scan.ts'

export const cacheFaults: readonly PlantedFault[] = [
  {
    name: 'lost-history-not-loaded-again',
    component: 'reflector',
    breaks: 'convergence',
    mistake: 'a follower whose history is compacted is tried again, and nothing is loaded',
    patches: [
      {
        file: reflector,
        find: "if (error.kind === 'compacted') this.#lose()",
        replace: "if (error.kind === 'compacted') this.progress.giveUp()",
      },
    ],
    faults: ['restore-bumped'],
    minutes: 3,
  },
  {
    name: 'reload-keeps-deleted-events',
    component: 'load',
    breaks: 'convergence',
    mistake: 'a reload adds and changes events, but does not remove those that are gone',
    patches: [
      {
        file: loader,
        find: '    await removeBetween(memory, { after: passed, before: key, slices })\n',
        replace: '',
      },
    ],
    faults: ['restore-bumped'],
    minutes: 3,
  },
  {
    name: 'load-over-a-new-connection',
    component: 'load',
    breaks: 'convergence',
    mistake: 'a page that came over a newer connection is accepted: etcd may have been restored',
    patches: [
      {
        file: loader,
        find: '    if (page.connection > connectionMax) throw reconnected()\n',
        replace: '',
      },
    ],
    faults: ['restore', 'replica-crash', 'reset', 'link-slow'],
  },
  {
    name: 'list-ranges-at-newest',
    component: 'load',
    breaks: 'pages of mixed snapshots',
    mistake: 'the second range of a page is read at the newest revision',
    patches: [
      {
        file: scan,
        find: 'const { rangeEnd, revision = this.#revision } = this.request',
        replace: 'const { rangeEnd, revision = 0 } = this.request',
      },
    ],
    minutes: 20,
  },
  {
    name: 'broken-stream-taken-as-complete',
    component: 'load',
    breaks: 'convergence',
    mistake: 'a stream of keys that ends early is taken for the end of the keys',
    patches: [
      {
        file: scan,
        find: 'if (source !== undefined) yield* this.#stream(scan, source, options)',
        replace:
          'if (source !== undefined) { yield* this.#stream(scan, source, options); if (!this.#withoutStreams.has(source.session)) return }',
      },
    ],
    faults: ['replica-crash', 'reset', 'member-crash', 'link-slow'],
  },
  {
    name: 'revision-applied-in-parts',
    component: 'reflector',
    breaks: 'whole transactions',
    mistake: 'each change of a transaction is announced as if the whole revision were applied',
    patches: [
      {
        file: reflector,
        find: 'if (next !== undefined && revisionOf(versionOf(next)) === revision) continue',
        replace: 'if (next !== undefined && versionOf(next) === versionOf(item)) continue',
      },
    ],
    faults: ['replica-load', 'link-slow', 'replica-stop'],
  },
  {
    name: 'delete-keeps-last-version',
    component: 'reflector',
    breaks: 'watch order',
    mistake: 'the change that deletes an event gets the version of its last state',
    patches: [
      {
        file: reflector,
        find: "return last && { type: 'delete', stored: withVersion(copied(last), item.version) }",
        replace: "return last && { type: 'delete', stored: copied(last) }",
      },
    ],
  },
  {
    name: 'tree-keeps-stale-separator',
    component: 'cache memory',
    breaks: 'linearizability of reads',
    mistake: 'a replaced slot stays as separator in the inner nodes of the tree',
    patches: [
      {
        file: 'src/cache/memory/slot-tree.ts',
        find: '      if (node.firsts[index] === slot) node.firsts[index] = next\n',
        replace: '',
      },
    ],
  },
  {
    name: 'index-keeps-deleted-events',
    component: 'indexes',
    breaks: 'linearizability of reads',
    mistake: 'a deleted event is removed from the tree of keys, but not from the indexes',
    patches: [
      {
        file: 'src/cache/memory/event-indexes.ts',
        find: '      if (this.#isIn(slot, index)) tree.remove(slot)\n',
        replace: '',
      },
    ],
  },
  {
    name: 'index-misses-changed-field',
    component: 'indexes',
    breaks: 'linearizability of reads',
    mistake: 'an event whose field changes stays at its old place in the index',
    patches: [
      {
        file: 'src/cache/memory/event-indexes.ts',
        find: 'if (isIn && table.valueOf(old, column) === table.valueOf(slot, column)) {',
        replace: 'if (isIn && table.valueOf(old, column) >= 0) {',
      },
    ],
  },
  {
    name: 'index-range-too-short',
    component: 'indexes',
    breaks: 'linearizability of reads',
    mistake: 'without an upper bound of the keys, a range in an index is empty',
    patches: [
      {
        file: 'src/cache/read/sources.ts',
        find: 'return key === undefined ? -1 : table.compareKey(slot, key)',
        replace: 'return key === undefined ? 1 : table.compareKey(slot, key)',
      },
    ],
  },
  {
    name: 'kept-rows-freed-early',
    component: 'kept states',
    breaks: 'pages of mixed snapshots',
    mistake: 'a row is freed because the oldest kept state does not have it; the newest one does',
    patches: [
      {
        file: memory,
        find: `    this.#rows.remove(slot)
    const newest = this.#snapshots.at(-1)`,
        replace: `    this.#rows.remove(slot)
    const newest = this.#snapshots.at(0)`,
      },
    ],
  },
  {
    name: 'kept-states-never-evicted',
    component: 'kept states',
    breaks: 'unbounded queue',
    mistake: 'the number of kept states is not limited',
    patches: [
      {
        file: memory,
        find: 'isExcess &&= this.#snapshots.length > statesMax || ',
        replace: 'isExcess &&= ',
      },
    ],
    minutes: 20,
  },
  {
    name: 'page-read-unpinned',
    component: 'kept states',
    breaks: 'pages of mixed snapshots',
    mistake: 'a search that takes several time slices does not keep the state that it reads',
    patches: [
      {
        file: 'src/cache/read/search.ts',
        find: 'return lane.slices({ hold: () => memory.pin(state, pages), signal })',
        replace: 'return lane.slices({ signal })',
      },
    ],
    faults: ['replica-load', 'link-slow'],
  },
  {
    name: 'mixture-kept-during-load',
    component: 'kept states',
    breaks: 'pages of mixed snapshots',
    mistake: 'a list that a reload overtakes keeps the mixture of both states for its next page',
    patches: [
      {
        file: memory,
        find: '    if (!this.#isWhole) return undefined\n    const snapshot = this.#takeSnapshot()\n',
        replace: '    const snapshot = this.#takeSnapshot()\n',
      },
      {
        file: memory,
        find: 'isForgotten: !this.#isWhole,',
        replace: 'isForgotten: false,',
      },
    ],
    faults: ['restore-bumped', 'replica-load', 'reset'],
  },
]
