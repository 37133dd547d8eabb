/** Which faults happen when: follows from the seed alone, so that single faults can be left out. */
import { Random } from '../../support/random.ts'
import type { Setting } from '../setting.ts'
import { type Begun, type FaultKind, type FaultTarget, faultKinds } from './kinds.ts'
import { originFaultKinds } from './origin-kinds.ts'
import { storeFaultKinds } from './store-kinds.ts'

export interface PlannedFault {
  readonly at: number
  readonly kind: string
  readonly ms: number
  /** Decides its own choices: which replica, which link. */
  readonly seed: number
}

export function planFaults(setting: Setting, names: readonly string[]): readonly PlannedFault[] {
  const random = new Random(setting.seed ^ 0x0fa017)
  const planned: PlannedFault[] = []
  for (const { begin, end } of setting.storms) {
    const counts = new Map<string, number>()
    // Storms differ: some have a few kinds of faults only, which then meet each other more often.
    const some = random.chance(0.5) ? names : names.filter(() => random.chance(0.4))
    const everyMs = random.pick(setting.mirror === undefined ? [200, 500, 1_500] : [40, 80, 200])
    for (let at = begin; at < end; at += random.between(0, 2 * everyMs)) {
      const kind = pickKind(some, random)
      const fault = { at, ms: durationOf(kind, random), seed: random.below(2 ** 32) }
      if (kind === undefined) continue
      const count = (counts.get(kind) ?? 0) + 1
      if (count > (kindOf(kind).perStorm ?? Number.POSITIVE_INFINITY)) continue
      counts.set(kind, count)
      planned.push({ ...fault, kind })
    }
  }
  return planned
}

export function beginFault(target: FaultTarget, fault: PlannedFault): Begun | undefined {
  return kindOf(fault.kind).begin(target, new Random(fault.seed))
}

const kinds: Readonly<Record<string, FaultKind>> = {
  ...faultKinds,
  ...originFaultKinds,
  ...storeFaultKinds,
}

export const allFaultNames: readonly string[] = Object.keys(kinds)

function kindOf(name: string): FaultKind {
  const kind = kinds[name]
  if (kind === undefined) throw new Error(`there is no fault called ${name}`)
  return kind
}

function pickKind(names: readonly string[], random: Random): string | undefined {
  const total = names.reduce((sum, name) => sum + kindOf(name).weight, 0)
  let left = random.next() * total
  return names.find((name) => {
    left -= kindOf(name).weight
    return left < 0
  })
}

/** Short ones are more frequent. */
function durationOf(kind: string | undefined, random: Random): number {
  const [least, most] = kind === undefined ? [0, 0] : kindOf(kind).ms
  return least + (most - least) * random.next() ** 2
}
