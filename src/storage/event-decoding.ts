import type { KeyValue } from '../etcd/client.ts'
import { StorageError } from './errors.ts'
import type { EventKeys } from './keys.ts'
import { changeIndexMax, type Version, versionOfChange } from './resource-version.ts'
import type { EventKey, StoredEvent } from './storage.ts'
import { isOwnValue, type OpenedValue, openValue, StoredBody } from './stored-form.ts'

/** Undefined when the key or the value is not one of ours. */
export function decodeEvent(kv: KeyValue, keys: EventKeys): StoredEvent | undefined {
  const key = keys.parse(kv.key)
  const value = openValue(kv.value)
  if (key === undefined || value === undefined || value.index > changeIndexMax) return undefined
  return storedAs(key, versionOfChange(kv.modRevision, value.index), value)
}

/** What is wrong with a value that is not an event: somebody else wrote it, or it cannot be read. */
export type ValueFault = 'foreign' | 'damaged'

export function faultOf(value: Buffer): ValueFault {
  return isOwnValue(value) ? 'damaged' : 'foreign'
}

/** Fails with `corrupt` when there is something that is not an event of ours. */
export function found(
  kv: KeyValue | undefined,
  at: { readonly key: EventKey; readonly keys: EventKeys },
): StoredEvent | undefined {
  if (kv === undefined) return undefined
  const stored = decodeEvent(kv, at.keys)
  if (stored !== undefined) return stored
  throw unreadable(at.key, faultOf(kv.value))
}

export function storedAs(key: EventKey, version: Version, value: OpenedValue): StoredEvent {
  const { body, versionOffset, writtenAtMs, fields } = value
  return new StoredBody({ key, body, versionOffset, version, writtenAtMs, fields })
}

export function unreadable(key: EventKey, fault: ValueFault): StorageError {
  const reason =
    fault === 'foreign'
      ? 'the datastore holds a value under this name that this server did not write; it is left alone'
      : 'what is stored under this name cannot be read as an event'
  const message = `event ${key.namespace}/${key.name}: ${reason}`
  return new StorageError({ kind: 'corrupt', message, reason, key })
}
