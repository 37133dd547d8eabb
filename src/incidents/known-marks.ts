import type { Event } from '../api/event.ts'
import type { EventFields } from '../storage/event-fields.ts'
import type { EventKey, Marks } from '../storage/storage.ts'
import { KnownOwners } from './known-owners.ts'
import { KnownPlaces } from './known-places.ts'
import { type NodeFields, nodeOf } from './node.ts'
import { workloadByName } from './workload.ts'

/** What events and owner references tell about the objects of other events. */
export class KnownMarks {
  readonly owners: KnownOwners = new KnownOwners()
  readonly places: KnownPlaces = new KnownPlaces()

  /** Events about objects of other namespaces teach nothing. */
  learn(key: EventKey, fields: EventFields): void {
    if (fields.regarding.namespace !== key.namespace) return
    this.owners.learn(key, fields)
    this.places.placed(key.cluster, fields)
  }

  /** What an event does not say by itself. Objects of other namespaces are not looked up. */
  readonly of = (cluster: string, event: Event): Marks => {
    const fields = fieldsOf(event)
    const { regarding } = fields
    if (regarding.namespace !== event.metadata.namespace) return NOTHING
    const { kind, name, rule } = this.owners.resolve(cluster, fields)
    const byName = workloadByName(regarding)
    const isTold = kind !== byName.kind || name !== byName.name
    const node = nodeOf(fields) === '' ? this.places.placed(cluster, fields) : ''
    if (!isTold && node === '') return NOTHING
    return {
      // If an event proves that a name means something else, that event told it.
      ...(isTold && { workload: { kind, name, rule: rule === 'owner' ? rule : 'event' } }),
      ...(node !== '' && { node }),
    }
  }
}

const NOTHING: Marks = {}

function fieldsOf(event: Event): NodeFields {
  const { regarding = {}, deprecatedSource = {} } = event
  const { kind = '', namespace = '', name = '', uid = '' } = regarding
  const { component: sourceComponent = '', host: sourceHost = '' } = deprecatedSource
  const { note = '', reason = '', reportingController = '', reportingInstance = '' } = event
  return {
    regarding: { kind, namespace, name, uid },
    note,
    reason,
    reportingController,
    reportingInstance,
    sourceComponent,
    sourceHost,
  }
}
