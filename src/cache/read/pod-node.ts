import { type Pod, placeOf } from '../../incidents/marks.ts'
import { COLUMNS, conditionsOf, uidNumber } from '../memory/columns.ts'
import type { EventTable } from '../memory/event-table.ts'
import type { EventMemory } from '../memory/memory.ts'
import { orderRange } from '../memory/order-key.ts'
import { rangesByColumn } from './sources.ts'

/** Events of a pod that are looked at: a pod that has more is placed by one of the first. */
const lookedAtMax = 16
/** Of these, so many are read, and none that is larger: this runs for every write about a pod. */
const readMax = 2
const readBytesMax = 8 * 1024

/** The node of a pod by the events about it; empty if none names it. */
export function nodeOfPod(memory: EventMemory, cluster: string, pod: Pod): string {
  const { namespace, name, uid } = pod
  const { table } = memory
  const keys = [orderRange({ cluster, namespace }, undefined)]
  const conditions = conditionsOf({ regarding: [{ kind: 'Pod', name }] }, table.texts)
  const [condition] = conditions?.numbers ?? []
  const [range] = (condition && rangesByColumn(memory, memory.peek(), keys)(condition)) ?? []
  if (range === undefined) return ''
  const { view, from, to } = range
  let read = 0
  for (let index = from; index < Math.min(to, from + lookedAtMax) && read < readMax; index++) {
    const { run, offset } = view.runAt(index)
    const slot = run.slots[offset]
    if (slot === undefined || !isCandidate(table, slot, uid)) continue
    read++
    const stored = table.read(slot)
    const { regarding } = stored.fields
    // A StatefulSet reuses names, and hashes may collide.
    const isSame = regarding.name === name && (uid === '' || regarding.uid === uid)
    if (isSame && regarding.kind === 'Pod') return placeOf(stored)
  }
  return ''
}

function isCandidate(table: EventTable, slot: number, uid: string): boolean {
  if (table.valueOf(slot, COLUMNS.node) === 0 || table.bytesOf(slot) > readBytesMax) return false
  return uid === '' || table.valueOf(slot, COLUMNS.regardingUid) === uidNumber(uid)
}
