/** How a watch tells what happens: one line of JSON for each change. */
import type { Status } from '../api/status.ts'
import type { FrameEncoder } from '../storage/frames.ts'
import type { Version } from '../storage/resource-version.ts'
import type { WatchItem } from '../storage/storage.ts'
import { type ShownEvent, unstoredEvent } from './event-bytes.ts'
import type { EventShape } from './event-shapes.ts'

/** Lives as long as the program; its encoders are there to be shared: see storage/frames.ts. */
export interface WatchForm {
  readonly contentType: string
  /** A change as it is: ADDED, MODIFIED or DELETED. */
  readonly natural: FrameEncoder
  /** A change by which an event came into view: ADDED. */
  readonly entered: FrameEncoder
  /** A change by which it went out of view: DELETED, its last state in view under the new version. */
  readonly left: FrameEncoder
  /** An event that was there before the watch: ADDED. */
  present(event: ShownEvent): Buffer
  /** How far the watch has come. `isInitialEnd`: all that was there before it has been told. */
  bookmark(version: Version, isInitialEnd: boolean): Buffer
  /** The last word of a watch that failed. */
  error(status: Status): Buffer
}

type FrameType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'

export function watchForm(shape: EventShape): WatchForm {
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
    left: { encode: (item) => write.DELETED(lastInView(item)) },
    present: write.ADDED,
    bookmark: (version, isInitialEnd) => write.BOOKMARK(markOf(version, isInitialEnd)),
    error: (status) => Buffer.from(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`),
  }
}

export function naturalType(item: WatchItem): FrameType {
  if (item.type === 'delete') return 'DELETED'
  return item.previous === undefined ? 'ADDED' : 'MODIFIED'
}

/** What was seen before a change by which an event went out of view, under that change's version. */
export function lastInView(item: WatchItem): ShownEvent {
  const { stored } = item
  if (item.type === 'delete' || item.previous === undefined) return stored
  const { body, versionOffset } = item.previous
  return { body, versionOffset, version: stored.version }
}

/** The event that a bookmark is told with. */
export function markOf(version: Version, isInitialEnd: boolean): ShownEvent {
  return unstoredEvent(isInitialEnd ? initialEnd : noEvent, version)
}

const noEvent: Buffer = bookmarkBody('{}')
const initialEnd: Buffer = bookmarkBody('{"annotations":{"k8s.io/initial-events-end":"true"}}')

/** An event of which nothing is set but what is always printed. */
function bookmarkBody(metadata: string): Buffer {
  return Buffer.from(
    `{"metadata":${metadata},"eventTime":null,"regarding":{},"deprecatedSource":{},"deprecatedFirstTimestamp":null,"deprecatedLastTimestamp":null}`,
  )
}
