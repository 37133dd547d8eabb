import { EncodedRunCache } from '../../codec/encoders/encoded-run-cache.ts'
import { EventEncoders } from '../../codec/encoders/event-encoders.ts'
import { namespaceView } from '../../codec/encoders/object-views.ts'
import type { AccessChecks } from '../../gate/access-checks.ts'
import { SharedSelectors } from '../../registry/read/event-selector.ts'
import { EventLister } from '../../registry/read/listing.ts'
import { inApiTerms, resourceNames } from '../../registry/storage-errors.ts'
import type { ReadStorage } from '../../storage/storage.ts'
import type { ReadApi } from '../events/event-api.ts'
import { getEvent } from '../events/get.ts'
import { listEvents } from '../events/list.ts'
import { watchEvents } from '../events/watch.ts'
import type { ReadOnlyResource } from './read-only-service.ts'

export const NAMESPACES = { group: '', version: 'v1', resource: 'namespaces' } as const

export interface NamespacesOptions {
  readonly storage: ReadStorage
  readonly accessChecks?: Pick<AccessChecks, 'add'> | undefined
  readonly watchMsMax: number
}

/**
 * The namespaces that have events, at `/api/v1/namespaces`, for clients that look for namespaces
 * first. The endpoints of events serve them.
 */
export function namespaces({
  storage,
  accessChecks,
  watchMsMax,
}: NamespacesOptions): ReadOnlyResource {
  const names = resourceNames(NAMESPACES.group, NAMESPACES.resource)
  const encoders = new EventEncoders(namespaceView, Date.now)
  const api: ReadApi = {
    registry: {
      names,
      get: (key, { versionText, ...options }) =>
        inApiTerms(storage.get(key, options), names, {
          wanted: options.notOlderThan,
          versionText,
          isRead: true,
        }),
    },
    storage,
    lister: new EventLister(storage, names),
    encoders,
    // A namespace of all clusters has events in any of them, so it has no cluster.
    wildcardEncoders: encoders,
    mirrored: undefined,
    tableOrder: 'key',
    runCache: new EncodedRunCache(),
    accessChecks,
    watchMsMax,
    now: Date.now,
    selectors: new SharedSelectors(),
  }
  return {
    ...NAMESPACES,
    get: getEvent(api),
    list: listEvents(api),
    watch: watchEvents(api),
  }
}
