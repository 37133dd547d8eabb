import { type Pod, placeAndWorkload } from '../../incidents/marks.ts'
import { COLUMNS, objectNumber, uidNumber } from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { EventMemory } from '../memory/memory.ts'
import { viewOf } from '../memory/order-key.ts'

/** Events of a pod that are looked at: a pod that has more is placed by one of the first. */
const lookedAtMax = 16
/** Of these, so many are read, and none that is larger: this runs for every write about a pod. */
const readMax = 2
const readBytesMax = 8 * 1024

/** The node of a pod by the events about it; empty if none names it. */
export function nodeOfPod(memory: EventMemory, cluster: string, pod: Pod): string {
  const { table } = memory
  const home = table.texts.find(`${cluster}/${pod.namespace}`)
  if (home === undefined) return ''
  const number = objectNumber({ kind: 'Pod', name: pod.name })
  const start = viewOf(Buffer.from(`${cluster}/${pod.namespace}/`))
  const view = memory.peekRegarding()
  const first = view.rank(
    (slot) => table.valueOf(slot, COLUMNS.regarding) - number || table.compareKey(slot, start),
  )
  let read = 0
  for (let index = first; index < Math.min(view.size, first + lookedAtMax); index++) {
    const { run, offset } = view.runAt(index)
    const slot = run.slots[offset] ?? 0
    const isOfPod =
      table.valueOf(slot, COLUMNS.regarding) === number &&
      table.valueOf(slot, COLUMNS.namespace) === home
    if (!isOfPod || read === readMax) return ''
    if (!isCandidate(table, slot, pod.uid)) continue
    read++
    const stored = table.read(slot)
    const { regarding } = stored.fields
    // A StatefulSet reuses names, and hashes may collide.
    const isSame = regarding.name === pod.name && (pod.uid === '' || regarding.uid === pod.uid)
    if (isSame && regarding.kind === 'Pod') return placeAndWorkload(stored).node
  }
  return ''
}

function isCandidate(table: EventTable, slot: number, uid: string): boolean {
  if (table.valueOf(slot, COLUMNS.node) === 0 || table.bytesOf(slot) > readBytesMax) return false
  return uid === '' || table.valueOf(slot, COLUMNS.regardingUid) === uidNumber(uid)
}
