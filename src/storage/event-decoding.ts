import type { KeyValue } from '../etcd/client.ts'
import { StorageError } from './errors.ts'
import type { EventKeys } from './keys.ts'
import { changeIndexMax, type Version, versionOfChange } from './resource-version.ts'
import type { EventKey, StoredEvent } from './storage.ts'
import { type OpenedValue, openValue, StoredBody } from './stored-form.ts'

/** Undefined when the key or the value is not one of ours. */
export function decodeEvent(kv: KeyValue, keys: EventKeys): StoredEvent | undefined {
  const key = keys.parse(kv.key)
  const value = openValue(kv.value)
  if (key === undefined || value === undefined || value.index > changeIndexMax) return undefined
  return storedAs(key, versionOfChange(kv.modRevision, value.index), value)
}

/** Fails with `corrupt` when there is something that is not an event of ours. */
export function found(
  kv: KeyValue | undefined,
  at: { readonly key: EventKey; readonly keys: EventKeys },
): StoredEvent | undefined {
  if (kv === undefined) return undefined
  const stored = decodeEvent(kv, at.keys)
  if (stored !== undefined) return stored
  const { key } = at
  throw new StorageError({
    kind: 'corrupt',
    message: `what is stored as event ${key.namespace}/${key.name} is not an event`,
    key,
  })
}

export function storedAs(key: EventKey, version: Version, value: OpenedValue): StoredEvent {
  const { body, versionOffset, writtenAtMs, fields } = value
  return new StoredBody({ key, body, versionOffset, version, writtenAtMs, fields })
}
