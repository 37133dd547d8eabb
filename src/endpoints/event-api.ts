import type { Event } from '../api/event.ts'
import type { EventGroup } from '../api/event-groups.ts'
import type { EventForms } from '../codec/event-forms.ts'
import type { EventView } from '../codec/event-shapes.ts'
import type { KeptEntries } from '../codec/kept-entries.ts'
import type { AccessChecks } from '../gate/access-checks.ts'
import type { Caller } from '../gate/gate.ts'
import type { EventLimits } from '../gate/limits/event-limits.ts'
import type { Request, Response } from '../http/exchange.ts'
import type { EventRemover } from '../registry/event-remover.ts'
import type { SharedSelectors } from '../registry/event-selector.ts'
import type { EventLister } from '../registry/listing.ts'
import type { EventRegistry } from '../registry/registry.ts'
import type { WatchedStorage } from '../storage/storage.ts'
import type { EventPath } from './event-routes.ts'

/** What the verbs work with. */
export interface EventApi {
  /** Under which they are asked for. */
  readonly group: EventGroup
  /** How they are shown there. */
  readonly view: EventView
  readonly registry: EventRegistry
  readonly lister: EventLister
  readonly remover: EventRemover
  readonly storage: Pick<WatchedStorage, 'watch' | 'currentVersion'>
  readonly forms: EventForms
  /** What was printed for long lists. */
  readonly kept: KeptEntries
  readonly eventLimits: Pick<EventLimits, 'take'> | undefined
  /** Who asks whether watches may go on; undefined when nothing is ever taken back. */
  readonly accessChecks: Pick<AccessChecks, 'add'> | undefined
  /** The longest that a watch may go on. */
  readonly watchMsMax: number
  /** Those of watches. */
  readonly selectors: SharedSelectors
  /** How long a request may take that nobody waits for any more. */
  readonly requestTimeoutMs: number
}

/**
 * Counts a write against its caller's allowance: once for a request, however often the write has to
 * be tried.
 */
export function admitOnce(
  { eventLimits }: Pick<EventApi, 'eventLimits'>,
  { user, sender }: Caller,
): (event: Event, bytes: number) => void {
  let isCounted = false
  return (event, bytes) => {
    if (!isCounted) eventLimits?.take({ user, sender, event, bytes })
    isCounted = true
  }
}

/** The path of one event. */
export type OneEvent = Extract<EventPath, { readonly kind: 'event' }>
/** The path of a namespace's events. */
export type EventCollection = Extract<EventPath, { readonly kind: 'collection' }>

/** Answers one verb on one kind of path. */
export type Endpoint<Path extends EventPath = EventPath> = (
  request: Request,
  path: Path,
  caller: Caller,
) => Promise<Response>
