import { badRequest } from '../../api/status.ts'
import { TIDINGS_GROUP, TIDINGS_VERSION } from '../../api/tidings-group.ts'
import { EventEncoders } from '../../codec/encoders/event-encoders.ts'
import { type ShownField, summaryView } from '../../codec/encoders/summary-views.ts'
import { attributesOf } from '../../gate/target.ts'
import { boundedKey } from '../../lib/heavy-hitters.ts'
import { laneOf } from '../../lib/run-queue.ts'
import { resourceNames } from '../../registry/storage-errors.ts'
import type { SourceRate, TopSources } from '../../registry/top-sources.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { EventSummaries, SummaryOptions } from '../../storage/summary.ts'
import type { EventApi, MirroredClusters } from '../events/event-api.ts'
import type { ListOnlyResource, ResourcePath } from '../objects/read-only-service.ts'
import { negotiateList } from '../request/negotiate.ts'
import { computed, computedResponse, summaryPlan } from './computed-list.ts'
import { type ShownGroup, summaryObject } from './summary-objects.ts'
import {
  type Comparison,
  isOfEvents,
  readComparison,
  readSummaryQuery,
  SHOWN_MAX,
} from './summary-options.ts'

export const EVENT_SUMMARIES: ResourcePath = {
  group: TIDINGS_GROUP,
  version: TIDINGS_VERSION,
  resource: 'eventsummaries',
}

/** The subresource that grants access to user names. It has no path. */
const USERS = 'users'

export interface SummariesOptions {
  readonly storage: Pick<EventSummaries, 'summarize'>
  /** The version of memory. */
  readonly version: () => Version
  readonly mirrored?: MirroredClusters | undefined
  readonly rates: Pick<TopSources, 'top'>
  /** If undefined, there is no warning when there is nothing to compare with. */
  readonly oldestIn?: EventApi['oldestIn']
  /** The wall clock in milliseconds. */
  readonly now?: (() => number) | undefined
}

interface Shown {
  readonly version: Version
  readonly groups: readonly ShownGroup[]
  readonly hidden: number
}

/**
 * Counts of events by group. Rates are cluster-wide, so the list of one namespace has none: they
 * would reveal what happens in others.
 */
export function eventSummaries(options: SummariesOptions): ListOnlyResource {
  const names = resourceNames(EVENT_SUMMARIES.group, EVENT_SUMMARIES.resource)
  const { now = Date.now } = options
  const encoders = new EncodersByGroup(now)
  return {
    ...EVENT_SUMMARIES,
    list: async (request, target, caller) => {
      const { groupBy, order, rateOf } = readSummaryQuery(target)
      // Events do not name their writers, so permission to read events is not enough to see them.
      if (!isOfEvents(groupBy)) {
        await caller.authorize(attributesOf({ ...target, subresource: USERS }))
      }
      const nowMs = now()
      const plan = summaryPlan(target, nowMs)
      const comparison = readComparison(target, { ...plan.window, nowMs })
      if (comparison !== undefined && !isOfEvents(groupBy)) {
        throw badRequest('groupBy=user has only rates, which compare cannot be applied to')
      }
      const encoder = encoders
        .of(groupBy, comparison !== undefined)
        .response(negotiateList(request))
      const { cluster, place } = target
      const rates = new Rates(rateOf === undefined ? [] : options.rates.top(rateOf, cluster))
      const groupsMax = Math.min(plan.limit, SHOWN_MAX)
      const { signal } = request
      const lane = laneOf(request)
      const count = async (by: SummaryOptions['groupBy']): Promise<Shown> => {
        const isByRate = order === 'rate'
        const wanted = {
          ...plan,
          ...comparison,
          groupBy: by,
          order: order === 'newest' ? ('newest' as const) : undefined,
          lane,
          signal,
          rankOf: isByRate ? rates.of : undefined,
          // All that have a rate, since some without events may be inserted between them.
          groupsMax: isByRate ? SHOWN_MAX : groupsMax,
        }
        const summary = await computed(options.storage.summarize(plan.scope, wanted), names, plan)
        const groups = summary.groups.map((group) => rates.addTo(group))
        const isTimeless = plan.window.sinceMs === undefined && plan.window.untilMs === undefined
        const isOfAll = isByRate && isTimeless && plan.selector === undefined
        const all = isOfAll ? rates.withUnstored(groups) : groups
        const first = all.slice(0, groupsMax)
        return { ...summary, groups: first, hidden: summary.hidden + all.length - first.length }
      }
      const shown = isOfEvents(groupBy)
        ? await count(groupBy)
        : { version: options.version(), ...rates.groups(groupsMax) }
      const context = { cluster, place, version: shown.version }
      const oldestMs = comparison && (await options.oldestIn?.(plan.scope, lane))
      return computedResponse(encoder, {
        version: shown.version,
        lane,
        signal,
        items: shown.groups.map((group) => summaryObject(groupBy, group, context)),
        warnings: [
          ...(options.mirrored?.warnings(cluster) ?? []),
          ...plan.warnings,
          ...comparisonWarning(comparison, oldestMs),
          // A client that sends a lower limit knows that there are more. kubectl always sends 500.
          ...(plan.limit < SHOWN_MAX ? [] : hiddenWarning(shown.hidden)),
        ],
      })
    },
  }
}

/** The rates of the values of one field. */
class Rates {
  readonly #perSecond: ReadonlyMap<string, number>

  constructor(top: readonly SourceRate[]) {
    this.#perSecond = new Map(top.map(({ value, rate }) => [value, rate]))
  }

  /** Returns 0 for a value that is not known to be among the highest. */
  readonly of = ([value = '']: readonly string[]): number =>
    this.#perSecond.get(boundedKey(value)) ?? 0

  addTo(group: ShownGroup): ShownGroup {
    return this.#perSecond.size === 0
      ? group
      : { ...group, ratePerMinute: perMinute(this.of(group.values)) }
  }

  /** Adds values without stored events, since a budget may evict those of the busiest writers. */
  withUnstored(groups: readonly ShownGroup[]): readonly ShownGroup[] {
    const stored = new Set(groups.map(({ values: [value = ''] }) => boundedKey(value)))
    const unstored = [...this.#perSecond]
      .filter(([value]) => !stored.has(value))
      .map(([value]) =>
        this.addTo({ values: [value], occurrences: 0, warnings: 0, events: 0, objects: 0 }),
      )
    return [...groups, ...unstored].sort(
      (one, other) => this.of(other.values) - this.of(one.values),
    )
  }

  /** Returns groups that have only a rate. */
  groups(groupsMax: number): Pick<Shown, 'groups' | 'hidden'> {
    const sorted = [...this.#perSecond].sort(([, one], [, other]) => other - one)
    const groups = sorted
      .slice(0, groupsMax)
      .map(([value, rate]) => ({ values: [value], ratePerMinute: perMinute(rate) }))
    return { groups, hidden: sorted.length - groups.length }
  }
}

function perMinute(perSecond: number): number {
  return Math.round(perSecond * 60)
}

/** Without earlier events everything looks new. */
function comparisonWarning(
  comparison: Comparison | undefined,
  oldestMs: number | undefined,
): readonly string[] {
  if (comparison === undefined || oldestMs === undefined) return []
  if (oldestMs <= comparison.newSince.sinceMs + SLACK_MS) return []
  const oldest = new Date(oldestMs).toISOString().slice(0, 19)
  return [`events go back only to ${oldest}Z: what happened before cannot be compared with`]
}

/** Nothing may have happened at the very beginning. */
const SLACK_MS = 3_600_000

function hiddenWarning(hidden: number): readonly string[] {
  if (hidden === 0) return []
  return [`${hidden} more groups are not shown: narrow the query, or group by fewer fields`]
}

/** The columns of a table depend on the fields. None is evicted: there are few sets of fields. */
class EncodersByGroup {
  readonly #known = new Map<string, EventEncoders>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  of(groupBy: readonly ShownField[], isCompared: boolean): EventEncoders {
    const key = `${groupBy.join()} ${isCompared}`
    let encoders = this.#known.get(key)
    if (encoders === undefined) {
      encoders = new EventEncoders(summaryView(groupBy, { isCompared }), this.#now)
      this.#known.set(key, encoders)
    }
    return encoders
  }
}
