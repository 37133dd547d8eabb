/** The workload and the node of a stored event. */
import type { StoredEvent } from '../storage/storage.ts'
import { decodeTrailer } from '../storage/trailer.ts'
import { nodeOf } from './node.ts'
import { type Workload, workloadByName } from './workload.ts'

type Marked = Pick<StoredEvent, 'fields' | 'trailer'>

/** What other events or owner references told when it was stored; otherwise what names say. */
export function workloadOf({ fields, trailer }: Marked): Workload {
  return decodeTrailer(trailer, fields).workload ?? workloadByName(fields.regarding)
}

/** Empty when it is not known. */
export function placeOf({ fields, trailer }: Marked): string {
  return nodeOf(fields) || (decodeTrailer(trailer, fields).node ?? '')
}
