/** Encodes the frames of a watch, one line of JSON per change. */
import type { Status } from '../../api/status.ts'
import type { FrameEncoder } from '../../storage/frames.ts'
import type { Version } from '../../storage/resource-version.ts'
import type { WatchItem } from '../../storage/storage.ts'
import { type ShownEvent, unstoredEvent } from '../event/event-bytes.ts'
import type { EventShape, EventView } from './event-shapes.ts'

/** Lives as long as the process. Watchers share its frame encoders: see storage/frames.ts. */
export interface WatchEncoder {
  readonly contentType: string
  /** Encodes a change with its own type: ADDED, MODIFIED or DELETED. */
  readonly natural: FrameEncoder
  /** Encodes a change after which the event matches the selector: ADDED. */
  readonly entered: FrameEncoder
  /**
   * Encodes a change after which it no longer matches: DELETED, with its last matching state and
   * the new version.
   */
  readonly left: FrameEncoder
  /** Encodes an event that existed before the watch: ADDED. */
  present(event: ShownEvent): Buffer
  /** Reports progress. `isInitialEnd` says that all events from before the watch have been sent. */
  bookmark(version: Version, isInitialEnd: boolean): Buffer
  /** The last frame of a watch that failed. */
  error(status: Status): Buffer
}

type FrameType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'

export function watchEncoder(shape: EventShape, bookmark: Bookmark): WatchEncoder {
  const writer = (type: FrameType) =>
    shape.writer({ before: `{"type":"${type}","object":`, after: '}\n' })
  const write = {
    ADDED: writer('ADDED'),
    MODIFIED: writer('MODIFIED'),
    DELETED: writer('DELETED'),
    BOOKMARK: writer('BOOKMARK'),
  }
  return {
    contentType: 'application/json',
    natural: { encode: (item) => write[naturalType(item)](item.stored) },
    entered: { encode: ({ stored }) => write.ADDED(stored) },
    left: { encode: (item) => write.DELETED(lastMatching(item)) },
    present: write.ADDED,
    bookmark: (version, isInitialEnd) => write.BOOKMARK(bookmark(version, isInitialEnd)),
    error: (status) => Buffer.from(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`),
  }
}

export function naturalType(item: WatchItem): FrameType {
  if (item.type === 'delete') return 'DELETED'
  return item.previous === undefined ? 'ADDED' : 'MODIFIED'
}

/** The last state that matched the selector, with the version of the change that ended that. */
export function lastMatching(item: WatchItem): ShownEvent {
  const { stored } = item
  if (item.type === 'delete' || item.previous === undefined) return stored
  const { body, versionOffset } = item.previous
  return { body, versionOffset, version: stored.version }
}

/** Creates the object of a bookmark frame. */
export type Bookmark = (version: Version, isInitialEnd: boolean) => ShownEvent

/** The object of a bookmark has only the members that are always encoded. */
export function bookmarkOf({ emptyMembers }: Pick<EventView, 'emptyMembers'>): Bookmark {
  const body = (metadata: string) => Buffer.from(`{"metadata":${metadata},${emptyMembers}}`)
  const empty = body('{}')
  const initialEnd = body('{"annotations":{"k8s.io/initial-events-end":"true"}}')
  return (version, isInitialEnd) => unstoredEvent(isInitialEnd ? initialEnd : empty, version)
}
