/** What became of events, and who writes most of them. */
import { Counter, Gauge, type Registry } from '@prometheus-io/client'
import { withoutTokens } from '../../lib/log/token-scrub.ts'
import { EVERY_CLUSTER, SOURCE_DIMENSIONS, type TopSources } from '../../registry/top-sources.ts'
import { CHANGE_KINDS, CountedWrites, WRITE_OUTCOMES } from '../../storage/counted-writes.ts'
import type { EventKey, EventWrites, KnownEvent } from '../../storage/storage.ts'

/** Who changes events. */
export type Writer = 'client' | 'mirror' | 'retention'

/** Each counts its own writes. */
export function writersTo(
  store: EventWrites,
  known: (key: EventKey) => KnownEvent | undefined,
): Readonly<Record<Writer, CountedWrites>> {
  return {
    client: new CountedWrites(store, known),
    mirror: new CountedWrites(store, known),
    retention: new CountedWrites(store, known),
  }
}

export function registerChangeMetrics(
  writers: Readonly<Record<Writer, CountedWrites>>,
  registry: Registry,
): void {
  new Counter({
    name: 'tidings_event_changes_total',
    help: 'Events that this replica created, updated or deleted, by writer: client, mirror or retention. With the outcome unknown, etcd did not respond in time, and the change may or may not have been made.',
    labelNames: ['writer', 'change', 'outcome'],
    registers: [registry],
    collect() {
      this.reset()
      for (const [writer, { counts }] of Object.entries(writers)) {
        for (const outcome of WRITE_OUTCOMES) {
          for (const change of CHANGE_KINDS) {
            this.inc({ writer, change, outcome }, counts[outcome][change])
          }
        }
      }
    },
  })
}

/** The series of a dimension: clients choose the names, so there are few, and they come and go. */
const TOP_MAX = 10
/** Writes per second. Without a least rate, each scrape of a quiet server would have new names. */
const SHOWN_RATE_MIN = 1
/** The least part of all writes. */
const SHOWN_SHARE_MIN = 1 / 256

export function registerTopSourceMetrics(sources: TopSources, registry: Registry): void {
  new Gauge({
    name: 'tidings_top_source_rate',
    help: 'Event writes per second, averaged over about a minute, of the top ten controllers, namespaces, reasons and users of all clusters; only those with at least one write a second and 1/256 of all writes. Users: of this replica; the others: of all replicas.',
    labelNames: ['dimension', 'value'],
    registers: [registry],
    collect() {
      this.reset()
      for (const dimension of SOURCE_DIMENSIONS) {
        const least = Math.max(SHOWN_RATE_MIN, SHOWN_SHARE_MIN * sources.totalRate(dimension))
        for (const { value, rate } of sources.top(dimension, EVERY_CLUSTER).slice(0, TOP_MAX)) {
          if (rate >= least) this.set({ dimension, value: withoutTokens(value) }, rate)
        }
      }
    },
  })
}
