import { TIDINGS_GROUP, TIDINGS_VERSION } from '../../api/tidings-group.ts'
import { EventEncoders } from '../../codec/encoders/event-encoders.ts'
import { histogramView } from '../../codec/encoders/summary-views.ts'
import { laneOf, mapInSlices } from '../../lib/run-queue.ts'
import { resourceNames } from '../../registry/storage-errors.ts'
import type { EventSummaries } from '../../storage/summary.ts'
import type { MirroredClusters } from '../events/event-api.ts'
import type { ListOnlyResource, ResourcePath } from '../objects/read-only-service.ts'
import { negotiateList } from '../request/negotiate.ts'
import { computed, computedResponse, summaryPlan } from './computed-list.ts'
import { bucketObject } from './summary-objects.ts'
import { readHistogramQuery } from './summary-options.ts'

export const EVENT_HISTOGRAMS: ResourcePath = {
  group: TIDINGS_GROUP,
  version: TIDINGS_VERSION,
  resource: 'eventhistograms',
}

const SECOND_MS = 1_000

export interface HistogramsOptions {
  readonly storage: Pick<EventSummaries, 'histogram'>
  readonly mirrored?: MirroredClusters | undefined
  /** The wall clock in milliseconds. */
  readonly now?: (() => number) | undefined
}

/** Counts of events by time: one object for each bucket of a window, even for an empty one. */
export function eventHistograms({
  storage,
  mirrored,
  now = Date.now,
}: HistogramsOptions): ListOnlyResource {
  const names = resourceNames(EVENT_HISTOGRAMS.group, EVENT_HISTOGRAMS.resource)
  const encoders = new EventEncoders(histogramView, now)
  return {
    ...EVENT_HISTOGRAMS,
    list: async (request, target) => {
      const encoder = encoders.response(negotiateList(request))
      // The same time for both bounds of the window, so that the buckets of an hour are whole
      // minutes. Rounded up, since bounds are whole seconds and the newest events must be before
      // the last one.
      const nowMs = Math.ceil(now() / SECOND_MS) * SECOND_MS
      const plan = summaryPlan(target, nowMs)
      const { sinceMs, untilMs } = plan.window
      const { by, bounds, namesMax } = readHistogramQuery(target, { sinceMs, untilMs, nowMs })
      const { notOlderThan, selector } = plan
      const lane = laneOf(request)
      const { signal } = request
      const wanted = { notOlderThan, selector, bounds, by, namesMax, lane, signal }
      const { version, buckets } = await computed(
        storage.histogram(plan.scope, wanted),
        names,
        plan,
      )
      const { cluster, place } = target
      const items = await mapInSlices(buckets.entries(), { lane, signal }, ([index, counts]) => {
        const [startMs = 0, endMs = 0] = bounds.slice(index, index + 2)
        return bucketObject({ startMs, endMs, counts }, { cluster, place, version })
      })
      const warnings = [...(mirrored?.warnings(cluster) ?? []), ...plan.warnings]
      return computedResponse(encoder, { version, items, warnings, lane, signal })
    },
  }
}
