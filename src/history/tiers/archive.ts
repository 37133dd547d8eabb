/** What the tiers need of the archive. Errors are StorageErrors. */
import type { Lane } from '../../lib/run-queue.ts'
import type { Requires } from '../../storage/requires.ts'
import type {
  ArchiveCut,
  EventKey,
  EventScope,
  ListOrder,
  StoredEvent,
} from '../../storage/storage.ts'
import type {
  EventHistogram,
  GroupField,
  SummaryGroup,
  SummaryOptions,
  TimeWindow,
} from '../../storage/summary.ts'
import type { Tiers } from './tiers.ts'

export interface ArchiveReading {
  readonly signal: AbortSignal
  readonly lane: Lane
}

/** A state of the archive, which never changes. */
export interface ArchiveView {
  /** Names the state in tokens. */
  readonly state: string
  /** Events in order. Not every one need match the selector that `requires` is from. */
  page(scope: EventScope, options: ArchivePageOptions): Promise<ArchivePage>
  groups(scope: EventScope, options: ArchiveGroupsOptions): Promise<ArchiveGroups>
  buckets(scope: EventScope, options: ArchiveBucketsOptions): Promise<EventHistogram['buckets']>
}

export interface ArchivePageOptions extends ArchiveReading {
  readonly requires: Requires
  readonly order: ListOrder
  readonly after: EventKey | undefined
  readonly afterMs: number | undefined
  readonly afterUid: string | undefined
  readonly limit: number
  readonly bytesMax: number
}

export interface ArchivePage {
  readonly items: readonly StoredEvent[]
  readonly more: boolean
  /** Set when time ran out before the page was full. */
  readonly cut: ArchiveCut | undefined
}

export interface ArchiveGroupsOptions extends ArchiveReading, Pick<SummaryOptions, 'groupBy'> {
  readonly requires: Requires | undefined
  readonly window: TimeWindow
}

export interface ArchiveGroups {
  readonly groups: readonly SummaryGroup[]
  /** Groups that were left out, since there are too many. */
  readonly hidden: number
}

export interface ArchiveBucketsOptions extends ArchiveReading {
  readonly requires: Requires | undefined
  readonly bounds: readonly number[]
  readonly by: GroupField
}

export interface Archive {
  /**
   * The newest state, or the one that a token names. Undefined when nothing was ever archived.
   * Fails with `compacted` when the named state is gone.
   */
  open(state: string | undefined, signal: AbortSignal): Promise<ArchiveView | undefined>
  /** Undefined until something is archived. */
  tiersOf(scope: EventScope, signal: AbortSignal): Promise<Tiers | undefined>
  /** Up to this time, the archive has every occurrence. */
  completeUntil(): number
}
