import type { KeyValue } from '../../etcd/client.ts'
import { type Version, versionOfChange } from '../resource-version.ts'
import type { EventKey, StoredEvent, Unreadable } from '../storage.ts'
import {
  BadValue,
  type OpenedValue,
  openValue,
  placeholderEvent,
  StoredBody,
  unreadable,
} from '../stored-form.ts'
import type { EventKeys } from './keys.ts'

export function decodeEvent(kv: KeyValue, keys: EventKeys): StoredEvent | BadValue {
  return decodeAt(keys.parse(kv.key), kv)
}

function decodeAt(key: EventKey | undefined, kv: KeyValue): StoredEvent | BadValue {
  const value = openValue(kv.value, key)
  if (value instanceof BadValue) return value
  return storedAs(versionOfChange(kv.modRevision, value.index), value)
}

/** Fails with `corrupt` or `foreign` when the value is not an event. */
export function found(kv: KeyValue | undefined, key: EventKey): StoredEvent | undefined {
  if (kv === undefined) return undefined
  const stored = decodeAt(key, kv)
  if (stored instanceof BadValue) throw unreadable(key, stored.fault)
  return stored
}

/** Decodes for a delete: a damaged event, which may be deleted, becomes a placeholder. */
export function foundToDelete(kv: KeyValue | undefined, key: EventKey): StoredEvent | undefined {
  if (kv === undefined) return undefined
  const stored = decodeAt(key, kv)
  if (!(stored instanceof BadValue)) return stored
  if (stored.fault === 'foreign') throw unreadable(key, stored.fault)
  const { writtenAtMs, index } = stored
  return placeholderEvent({ key, writtenAtMs, version: versionOfChange(kv.modRevision, index) })
}

export function unreadableAt(key: EventKey, kv: KeyValue, value: BadValue): Unreadable {
  const { fault, writtenAtMs, index } = value
  return { key, fault, writtenAtMs, version: versionOfChange(kv.modRevision, index) }
}

export function storedAs(version: Version, value: OpenedValue): StoredEvent {
  const { key, body, trailer, versionOffset, writtenAtMs, fields } = value
  return new StoredBody({ key, body, trailer, versionOffset, version, writtenAtMs, fields })
}
