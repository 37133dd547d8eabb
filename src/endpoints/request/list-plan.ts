/** Plans a list or a watch from its path and options: scope, selector and version. */
import { ALL_CLUSTERS } from '../../gate/attributes.ts'
import { ownText } from '../../lib/text/own-text.ts'
import { eventSelector, namedBy, type SharedSelectors } from '../../registry/read/event-selector.ts'
import {
  listPosition,
  type PositionDefaults,
  readVersion,
} from '../../registry/read/list-position.ts'
import type { ListQuery } from '../../registry/read/listing.ts'
import { selectorWarnings } from '../../registry/read/selector-warnings.ts'
import { allEvents } from '../../storage/event-scope.ts'
import { beginning, isAfter, type Version } from '../../storage/resource-version.ts'
import type { EventScope, EventSelector } from '../../storage/storage.ts'
import { type ListTarget, readListOptions } from './list-options.ts'

/** Matches nothing, since names begin with a letter or a digit. */
const emptyScope: EventScope = { cluster: '.', namespace: undefined }

export interface ListPlan extends Omit<ListQuery, 'signal' | 'lane'> {
  /** The normal form of the shard selector, which the response repeats. */
  readonly shardSelector: string | undefined
  /** What the client should know about its selectors. */
  readonly warnings: readonly string[]
}

/** Throws a 400 or a 422 when the options of the request are invalid. */
export function listPlan(
  target: ListTarget,
  { order = 'key', nowMs = Date.now() }: Partial<PositionDefaults> = {},
): ListPlan {
  const options = readListOptions(target)
  const pathScope = scopeOf(target)
  const { labelSelector, fieldSelector, shardSelector, limit, listMax } = options
  const named = namedBy(fieldSelector)
  const scope = narrowed(pathScope, named)
  // At most one event has this name, so the limit and the continue token are ignored.
  const isSingle = named.name !== undefined && scope.namespace !== undefined
  const position = listPosition(pathScope, isSingle ? { ...options, limit: 0 } : options, {
    order,
    nowMs,
  })
  const selector = eventSelector(labelSelector, fieldSelector, position.nowMs, shardSelector)
  return {
    scope,
    tokenScope: pathScope,
    selector,
    warnings: selectorWarnings(fieldSelector, selector?.requires),
    shardSelector: shardSelector?.text,
    ...position,
    ...(isSingle ? { after: undefined } : undefined),
    // A smaller page would also be the last one, and lose events that were requested.
    limit: isSingle ? undefined : (listMax ?? (limit === 0 ? undefined : limit)),
    isOnlyPage: listMax !== undefined,
  }
}

export interface WatchPlan {
  readonly scope: EventScope
  readonly selector: EventSelector | undefined
  readonly warnings: readonly string[]
  /** The list of existing events, which is sent first. */
  readonly initial: Omit<ListQuery, 'signal' | 'lane'> | undefined
  /** Whether a bookmark marks the end of the existing events. */
  readonly hasInitialBookmark: boolean
  /** Changes after this version are sent, if there are no initial events. Undefined means now. */
  readonly from: Version | undefined
  readonly hasBookmarks: boolean
  readonly lifetimeMs: number
}

export interface WatchBounds {
  /** The longest lifetime of a watch. */
  readonly watchMsMax: number
  readonly selectors: SharedSelectors
  /** The wall clock. */
  readonly now: () => number
}

export function watchPlan(
  target: ListTarget,
  { watchMsMax, selectors, now }: WatchBounds,
): WatchPlan {
  const options = readListOptions(target)
  const { labelSelector, fieldSelector, sendInitialEvents, allowWatchBookmarks } = options
  const version = readVersion(options.resourceVersion)
  const isFromVersion = version !== undefined && isAfter(version, beginning)
  const isInitial = sendInitialEvents ?? !isFromVersion
  const pathScope = scopeOf(target)
  const scope = narrowed(pathScope, namedBy(fieldSelector))
  const nowMs = now()
  const made = eventSelector(labelSelector, fieldSelector, nowMs, options.shardSelector)
  const { sinceMs, untilMs } = made?.requires ?? {}
  const selector = selectors.share([...options.selectorTexts, `${sinceMs} ${untilMs}`], made)
  return {
    scope,
    selector,
    warnings: selectorWarnings(fieldSelector, made?.requires),
    initial: isInitial
      ? {
          scope,
          tokenScope: pathScope,
          selector,
          at: undefined,
          after: undefined,
          notOlderThan: version,
          // Retained as long as the watch, so leading zeros are dropped: a client may send
          // thousands.
          versionText: ownText(options.resourceVersion.replace(/^0+(?=\d)/, '')),
          limit: undefined,
          order: 'key',
          isOrderOptional: false,
          nowMs,
        }
      : undefined,
    hasInitialBookmark: sendInitialEvents === true && allowWatchBookmarks,
    from: isFromVersion ? version : undefined,
    hasBookmarks: allowWatchBookmarks,
    lifetimeMs: lifetimeMs(options.timeoutSeconds, watchMsMax),
  }
}

/** A namespace of all clusters is not a scope. `readListOptions` makes it a field requirement. */
export function scopeOf({ cluster, place }: ListTarget): EventScope {
  if (cluster === ALL_CLUSTERS) return allEvents
  return { cluster, namespace: 'namespace' in place ? ownText(place.namespace) : undefined }
}

/**
 * Narrows a scope to the namespace that a selector requires, or to nothing if that is impossible.
 */
function narrowed(scope: EventScope, named: ReturnType<typeof namedBy>): EventScope {
  if (named.isImpossible) return emptyScope
  if (named.namespace === undefined || named.namespace === scope.namespace) return scope
  if (scope.cluster === undefined) return scope
  return scope.namespace === undefined ? { ...scope, namespace: named.namespace } : emptyScope
}

/**
 * Random unless the client sent a shorter timeout, so that watches do not all reconnect at once.
 */
function lifetimeMs(timeoutSeconds: number | undefined, watchMsMax: number): number {
  const requestedMs = Math.max(0, timeoutSeconds ?? Number.POSITIVE_INFINITY) * 1000
  return requestedMs <= watchMsMax ? requestedMs : (watchMsMax / 2) * (1 + Math.random())
}
