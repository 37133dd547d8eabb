/** The workload and the node of an event: what is stored of them, and what they are then. */
import type { Event } from '../api/event.ts'
import type { ObjectReference } from '../storage/event-fields.ts'
import type { Marks, StoredEvent } from '../storage/storage.ts'
import { decodeTrailer } from '../storage/trailer.ts'
import type { KnownOwners } from './known-owners.ts'
import { type NodeFields, nodeOf } from './node.ts'
import { patternOf } from './pattern.ts'
import { type NamedObject, type Workload, workloadByName } from './workload.ts'

type Marked = Pick<StoredEvent, 'fields' | 'trailer'>

/** The node is empty when it is not known. */
export interface PlaceAndWorkload {
  readonly workload: Workload
  readonly node: string
}

/** By other events or owner references when it was stored; otherwise by the event itself. */
export function placeAndWorkload({ fields, trailer }: Marked): PlaceAndWorkload {
  const { workload = workloadByName(fields.regarding), node = '' } = decodeTrailer(trailer, fields)
  return { workload, node: nodeOf(fields) || node }
}

interface Computed extends PlaceAndWorkload {
  readonly pattern: number
}

/** Many watches test the same change. */
const computed = new WeakMap<Marked, Computed>()

function computedOf(stored: Marked): Computed {
  const known = computed.get(stored)
  if (known !== undefined) return known
  const made = { ...placeAndWorkload(stored), pattern: patternOf(stored.fields.note) }
  computed.set(stored, made)
  return made
}

export function workloadOf(stored: Marked): Workload {
  return computedOf(stored).workload
}

/** Empty when it is not known. */
export function placeOf(stored: Marked): string {
  return computedOf(stored).node
}

export function notePatternOf(stored: Marked): number {
  return computedOf(stored).pattern
}

export type Pod = Pick<ObjectReference, 'namespace' | 'name' | 'uid'>

/** What is known from other events of a cluster, and from owner references. */
export interface Known {
  readonly owners: Pick<KnownOwners, 'resolve'>
  /** Empty when no event has placed the pod. */
  readonly nodeOfPod: (cluster: string, pod: Pod) => string
}

/** What an event does not say by itself. Objects of other namespaces are not looked up. */
export function marksOf(cluster: string, event: Event, { owners, nodeOfPod }: Known): Marks {
  const fields = nodeFieldsOf(event)
  const { regarding } = fields
  if (regarding.namespace !== event.metadata.namespace) return NOTHING
  const workload = workloadMark(owners.resolve(cluster, fields), regarding)
  const isUnplaced = regarding.kind === 'Pod' && nodeOf(fields) === ''
  const node = isUnplaced ? nodeOfPod(cluster, regarding) : ''
  if (workload === undefined && node === '') return NOTHING
  return { ...(workload !== undefined && { workload }), ...(node !== '' && { node }) }
}

/** Nothing is stored where names say the same. */
function workloadMark({ kind, name, rule }: Workload, regarding: NamedObject): Marks['workload'] {
  const byName = workloadByName(regarding)
  if (kind === byName.kind && name === byName.name) {
    return rule === 'owner' || rule === 'event' ? 'by-name' : undefined
  }
  // An event proved that the name means something else.
  return { kind, name, rule: rule === 'owner' ? rule : 'event' }
}

const NOTHING: Marks = {}

function nodeFieldsOf(event: Event): NodeFields {
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
