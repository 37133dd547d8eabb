/** Events for the tests of the cache, without a store. */
import type { Version } from '../../storage/resource-version.ts'
import { versionOfChange } from '../../storage/resource-version.ts'
import type { EventKey, StoredEvent, WatchItem } from '../../storage/storage.ts'
import {
  BadValue,
  openValue,
  prepareValue,
  StoredBody,
  sealValue,
  trailerAfter,
} from '../../storage/stored-form.ts'

/** The indexed fields of a made event, and its note; absent ones are empty. */
export interface MadeFields {
  readonly note?: string
  readonly reason?: string
  readonly type?: string
  readonly controller?: string
  /** The component of the deprecated source. */
  readonly component?: string
  readonly uid?: string
  readonly object?: string
  /** The object in `related`. */
  readonly related?: string
  readonly lastSeenMs?: number
}

/** An event as storage returns it. */
export function madeEvent(key: EventKey, version: Version, fields: MadeFields = {}): StoredEvent {
  const { note = '', reason = '', type = '', controller = '', uid = '', object = '' } = fields
  const { component, related, lastSeenMs } = fields
  const body = JSON.stringify({
    metadata: { name: key.name, namespace: key.namespace },
    reason,
    type,
    reportingController: controller,
    ...(component !== undefined && { deprecatedSource: { component } }),
    regarding: { kind: 'Pod', namespace: key.namespace, name: object, uid },
    note,
    ...(related !== undefined && {
      related: { kind: 'Node', name: related, uid: `${related}-uid` },
    }),
    ...(lastSeenMs !== undefined && {
      eventTime: new Date(lastSeenMs).toISOString().replace('Z', '000Z'),
    }),
  })
  return storedEvent(key, version, Buffer.from(body))
}

/** A body as the store returns it, at this version, after it replaced `current`. */
export function storedEvent(
  key: EventKey,
  version: Version,
  body: Buffer,
  current?: StoredEvent,
): StoredEvent {
  const prepared = prepareValue(body, undefined, trailerAfter(key, current, { body }))
  const opened = openValue(sealValue(prepared, 1_700_000_000_000, 0), key)
  if (opened instanceof BadValue) throw new Error(opened.what)
  const { trailer, versionOffset, writtenAtMs } = opened
  return new StoredBody({ key, body: opened.body, trailer, versionOffset, version, writtenAtMs })
}

/** A put of `namespace/e-<n>` as change `index` of revision `revision`. */
export function madePut(namespace: string, revision: number, index = 0): WatchItem {
  const key = { cluster: 'local', namespace, name: `e-${revision}-${index}` }
  const stored = madeEvent(key, versionOfChange(revision, index))
  return { type: 'put', stored, previous: undefined }
}
