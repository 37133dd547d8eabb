/** What must be true of a mirrored cluster in a world without faults. */
import type { MirrorView } from './mirror-view.ts'
import type { OriginRecord } from './origin-model.ts'
import { mirroredCluster } from './setting.ts'

/**
 * After the last fault, everything is mirrored again within this time: 45 s for the engine itself
 * (see worlds/checker/calm.ts), then a term of 10 s may have to end, and a follower retries after at
 * most 30 s.
 */
const recoveryMs = 90_000
/** How long a change takes in a calm world. */
const lagMsMax = 15_000
/** How long the world has to be calm before a check. */
export const calmNeededMs: number = recoveryMs + lagMsMax

/** What the origin has is what is stored. */
export function checkCalm(view: MirrorView, calmSince: number): void {
  const { world, model, record } = view
  const now = world.now()
  for (const last of model.last) {
    if (last === undefined || now - last.at < lagMsMax) continue
    if (last.kind === 'put') checkExact(view, last)
    else if (last.kind === 'delete' && last.at > calmSince + recoveryMs) {
      view.checkRepeated(last, last.at + lagMsMax)
    }
  }
  if (record?.state !== 'Following') {
    const what = `the record says ${record?.state}: ${record?.message}`
    world.violation('a calm world is followed', what)
  }
  for (const replica of world.replicas) {
    replica.after(0, () => {
      const status = replica.parts?.mirrors?.statuses.get(mirroredCluster)
      if (status?.state === 'Following' || world.calmSince === undefined) return
      const what = `replica ${replica.index} reports ${status?.state}: ${status?.message}`
      world.violation('a calm world is followed', what)
    })
  }
}

function checkExact(view: MirrorView, last: OriginRecord): void {
  const { world, model } = view
  const stored = view.stored[last.key]
  if (stored?.state === last.state) return
  if (stored === undefined && !view.isYoung(last.state.at)) return
  world.violation(
    'a calm world is mirrored exactly',
    `the origin has version ${last.version} of ${model.pathOf(last.key)}`,
    [
      `stored: ${view.describe(stored)}`,
      `the record: ${JSON.stringify(view.record)}`,
      `the origin is at version ${model.version}, restored to ${model.restoredTo}`,
    ],
  )
}
