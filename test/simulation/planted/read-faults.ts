/** Planted in the way of reads: freshness, versions that clients require, pages. */
import type { PlantedFault } from './planted-fault.ts'

const freshness = 'src/cache/freshness.ts'
const sources = 'src/cache/read/sources.ts'
const matcher = 'src/cache/read/matcher.ts'
const cachedStorage = 'src/cache/cached-storage.ts'

export const readFaults: readonly PlantedFault[] = [
  {
    name: 'joins-a-revision-read-under-way',
    component: 'coalesced revision reads',
    breaks: 'linearizability of reads',
    mistake: 'a read shares a request for the newest revision that was sent before it began',
    patches: [
      {
        file: 'src/lib/shared-work.ts',
        find: 'if (this.#underWay === undefined) return this.#begin()',
        replace: 'return this.#underWay ?? this.#begin()',
      },
    ],
    faults: ['link-slow', 'peer-slow', 'replica-load'],
  },
  {
    name: 'progress-wakes-every-read',
    component: 'freshness of consistent reads',
    breaks: 'linearizability of reads',
    mistake: 'any progress ends the wait of a read, whatever version it waits for',
    patches: [
      {
        file: 'src/cache/progress.ts',
        find: 'if (isAfter(waiter.version, version) || waiter.connection > verified) continue',
        replace: 'if (waiter.connection > verified) continue',
      },
    ],
    faults: ['link-slow', 'peer-slow', 'replica-load', 'reset'],
  },
  {
    name: 'read-gives-up-and-serves',
    component: 'freshness of consistent reads',
    breaks: 'linearizability of reads',
    mistake: 'a read that waited too long for memory is served from memory all the same',
    patches: [
      {
        file: 'src/cache/progress.ts',
        find: `        this.#waiters.delete(waiter)
        end(false)`,
        replace: `        this.#waiters.delete(waiter)
        end(true)`,
      },
    ],
    faults: ['link-slow', 'link-cut', 'link-cut-one-way', 'reset'],
  },
  {
    name: 'memory-served-unverified',
    component: 'freshness of consistent reads',
    breaks: 'linearizability of reads',
    mistake: 'memory is served without a check that its history is that of the connection',
    patches: [
      {
        file: freshness,
        find: 'if (this.isVerifiedFor(connection) && this.#has(version)) return true',
        replace: 'if (this.#has(version)) return true',
      },
    ],
    faults: ['restore', 'link-cut', 'link-cut-one-way', 'replica-stop'],
  },
  {
    name: 'not-older-than-ignored',
    component: 'notOlderThan',
    breaks: 'reads as new as asked for',
    mistake: 'a read with a version is served from memory before memory has that version',
    patches: [
      {
        file: freshness,
        find: 'if (notOlderThan !== undefined && this.#has(notOlderThan)) return true',
        replace: 'if (notOlderThan !== undefined && this.#has(beginning)) return true',
      },
    ],
    faults: ['link-slow', 'link-cut', 'replica-load'],
  },
  {
    name: 'page-continues-at-present',
    component: 'kept states',
    breaks: 'pages of mixed snapshots',
    mistake: 'a page at an earlier version is read from the present state',
    patches: [
      {
        file: cachedStorage,
        find: 'const isPresent = versionOfState(revisionOf(at)) === this.#memory.version',
        replace: 'const isPresent = !isAfter(versionOfState(revisionOf(at)), this.#memory.version)',
      },
    ],
    faults: [],
  },
  {
    name: 'continue-token-without-version',
    component: 'continue tokens',
    breaks: 'pages of mixed snapshots',
    mistake: 'the continue token has no version, so that the next page is of the newest state',
    patches: [
      {
        file: 'src/registry/read/continue-token.ts',
        find: 'const rv = version === undefined ? latestVersion : Number(formatVersion(version))',
        replace:
          'const rv = version === undefined ? Number(formatVersion(version)) : latestVersion',
      },
    ],
    faults: [],
  },
  {
    name: 'page-repeats-last-key',
    component: 'continue tokens',
    breaks: 'pages of mixed snapshots',
    mistake: 'off by one: a page begins with the last key of the page before it',
    patches: [
      {
        file: 'src/cache/memory/order-key.ts',
        find: 'const next = after === undefined ? first : keyAfter(orderKey(after))',
        replace: 'const next = after === undefined ? first : orderKey(after)',
      },
    ],
    faults: [],
  },
  {
    name: 'remaining-counts-all-namespaces',
    component: 'pages',
    breaks: 'wrong remaining count',
    mistake: 'the remaining count includes events of other namespaces',
    patches: [
      {
        file: 'src/cache/read/page.ts',
        find: '  return { items, following, remaining: following }\n',
        replace: '  return { items, following, remaining: memory.count - items.length }\n',
      },
    ],
    faults: [],
  },
  {
    name: 'newest-page-repeats-last-event',
    component: 'pages in the order of time',
    breaks: 'order of timed pages',
    mistake: 'off by one: a page in the order newest begins with the last event of the page before',
    patches: [
      {
        file: sources,
        find: 'to = Math.min(to, view.rank(compare))',
        replace: 'to = Math.min(to, view.rank(compare) + 1)',
      },
    ],
    faults: [],
  },
  {
    name: 'oldest-page-skips-ties',
    component: 'pages in the order of time',
    breaks: 'order of timed pages',
    mistake: 'a page begins after all events that were seen at the same time as the last one',
    patches: [
      {
        file: sources,
        find: 'view.rank((slot) => (compare(slot) <= 0 ? -1 : 1)),',
        replace: 'view.rank((slot) => (table.lastSeenOf(slot) <= (query.afterMs ?? 0) ? -1 : 1)),',
      },
    ],
    faults: [],
  },
  {
    name: 'timed-token-without-version',
    component: 'pages in the order of time',
    breaks: 'pages of mixed snapshots',
    mistake: 'a further page in the order of time is of the newest state',
    patches: [
      {
        file: 'src/registry/read/continue-token.ts',
        find: 'const rv = version === undefined ? latestVersion : Number(formatVersion(version))',
        replace:
          "const rv = version === undefined || order !== 'key' ? latestVersion : Number(formatVersion(version))",
      },
    ],
    faults: [],
  },
  {
    name: 'since-is-exclusive',
    component: 'time spans',
    breaks: 'bounds of time spans',
    mistake: 'an event that was last seen exactly at the beginning of the span is left out',
    patches: [
      {
        file: matcher,
        find: 'if (seenMs >= sinceMs && seenMs < untilMs) hits[kept++] = index',
        replace: 'if (seenMs > sinceMs && seenMs < untilMs) hits[kept++] = index',
      },
    ],
    faults: [],
  },
  {
    name: 'until-is-inclusive',
    component: 'time spans',
    breaks: 'bounds of time spans',
    mistake: 'an event that was last seen exactly at the end of the span is included',
    patches: [
      {
        file: matcher,
        find: 'if (seenMs >= sinceMs && seenMs < untilMs) hits[kept++] = index',
        replace: 'if (seenMs >= sinceMs && seenMs <= untilMs) hits[kept++] = index',
      },
      {
        file: 'src/registry/read/field-tests.ts',
        find: 'return ({ fields }) => fields.lastSeenMs < untilMs',
        replace: 'return ({ fields }) => fields.lastSeenMs <= untilMs',
      },
      {
        file: sources,
        find: 'let to = untilMs === undefined ? view.size : rank(untilMs)',
        replace: 'let to = untilMs === undefined ? view.size : rank(untilMs + 1)',
      },
    ],
    faults: [],
  },
  {
    name: 'changed-time-not-indexed',
    component: 'index by time',
    breaks: 'order of timed pages',
    mistake: 'an event that is seen again keeps its place in the order of time',
    patches: [
      {
        file: 'src/cache/memory/event-indexes.ts',
        find: 'if (table.lastSeenOf(old) === table.lastSeenOf(slot)) this.#byTime.replace(old, slot)',
        replace: 'if (table.lastSeenOf(old) >= 0) this.#byTime.replace(old, slot)',
      },
    ],
    faults: [],
  },
]
