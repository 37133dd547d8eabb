/** From a path and its options to what a list or a watch is about. */
import type { EventGroup } from '../api/event-groups.ts'
import { ownText } from '../lib/own-text.ts'
import { eventSelector, namedBy, type SharedSelectors } from '../registry/event-selector.ts'
import { listPosition, readVersion } from '../registry/list-position.ts'
import type { ListQuery } from '../registry/listing.ts'
import { beginning, isAfter, type Version } from '../storage/resource-version.ts'
import type { EventScope, EventSelector } from '../storage/storage.ts'
import type { EventPath } from './event-routes.ts'
import { type ListOptions, type ListPath, readListOptions } from './list-options.ts'

/** Names of namespaces begin with a letter or a digit: nothing is in this one. */
const emptyScope: EventScope = { namespace: '.' }

export function readOptions(
  query: URLSearchParams,
  path: EventPath,
  { fieldNames }: EventGroup,
): ListOptions {
  const listPath: ListPath = {
    fieldNames,
    isWatch: path.isWatchPath,
    name: path.kind === 'event' ? path.name : undefined,
  }
  return readListOptions(query, listPath)
}

export function listQuery(path: EventPath, options: ListOptions): Omit<ListQuery, 'signal'> {
  const pathScope = scopeOf(path)
  const { labelSelector, fieldSelector, limit } = options
  const named = namedBy(fieldSelector)
  const scope = narrowed(pathScope, named)
  // There is at most one event of a name: pages make no sense.
  const isSingle = named.name !== undefined && scope.namespace !== undefined
  const position = listPosition(pathScope, isSingle ? { ...options, limit: 0 } : options)
  return {
    scope,
    tokenScope: pathScope,
    selector: eventSelector(labelSelector, fieldSelector),
    position: isSingle ? { ...position, after: undefined } : position,
    limit: limit === 0 || isSingle ? undefined : limit,
  }
}

/** How a watch begins, and for how long it goes on. */
export interface WatchPlan {
  readonly scope: EventScope
  readonly selector: EventSelector | undefined
  /** What is told first: the events that are there. */
  readonly initial: Omit<ListQuery, 'signal'> | undefined
  /** Whether the end of those is told as well. */
  readonly hasInitialBookmark: boolean
  /** Without initial events: after which version. Undefined: from now on. */
  readonly from: Version | undefined
  readonly hasBookmarks: boolean
  readonly lifetimeMs: number
}

export interface WatchBounds {
  /** The longest that a watch may go on. */
  readonly watchMsMax: number
  readonly selectors: SharedSelectors
}

export function watchPlan(
  path: EventPath,
  options: ListOptions,
  { watchMsMax, selectors }: WatchBounds,
): WatchPlan {
  const { labelSelector, fieldSelector, sendInitialEvents, allowWatchBookmarks } = options
  const version = readVersion(options.resourceVersion)
  const isFromVersion = version !== undefined && isAfter(version, beginning)
  const isInitial = sendInitialEvents ?? !isFromVersion
  const pathScope = scopeOf(path)
  const scope = narrowed(pathScope, namedBy(fieldSelector))
  const selector = selectors.share(
    options.selectorTexts,
    eventSelector(labelSelector, fieldSelector),
  )
  return {
    scope,
    selector,
    initial: isInitial
      ? {
          scope,
          tokenScope: pathScope,
          selector,
          position: {
            at: undefined,
            after: undefined,
            notOlderThan: version,
            asked: ownText(options.resourceVersion),
          },
          limit: undefined,
        }
      : undefined,
    hasInitialBookmark: sendInitialEvents === true && allowWatchBookmarks,
    from: isFromVersion ? version : undefined,
    hasBookmarks: allowWatchBookmarks,
    lifetimeMs: lifetimeMs(options.timeoutSeconds, watchMsMax),
  }
}

function scopeOf(path: EventPath): EventScope {
  return { namespace: path.kind === 'everything' ? undefined : ownText(path.namespace) }
}

/** A selector may name the namespace too, or ask for what cannot be. */
function narrowed(scope: EventScope, named: ReturnType<typeof namedBy>): EventScope {
  if (named.isImpossible) return emptyScope
  if (named.namespace === undefined || named.namespace === scope.namespace) return scope
  return scope.namespace === undefined ? { namespace: named.namespace } : emptyScope
}

/** One that did not ask for an end, or for a later one, ends before: not all come back at once. */
function lifetimeMs(timeoutSeconds: number | undefined, watchMsMax: number): number {
  const askedMs = Math.max(0, timeoutSeconds ?? Number.POSITIVE_INFINITY) * 1000
  return askedMs <= watchMsMax ? askedMs : (watchMsMax / 2) * (1 + Math.random())
}
