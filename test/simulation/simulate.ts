/** Runs one seed, and shortens a run that fails. */
import { faultNames, historyFaultNames, mirrorFaultNames } from './faults/kinds.ts'
import { type PlannedFault, planFaults } from './faults/plan.ts'
import {
  makeHistoryWorld,
  makeMirrorWorld,
  makeSetting,
  type Setting,
  type SettingOptions,
} from './setting.ts'
import { type RunResult, World, type WorldOptions } from './world.ts'
import type { WorldKind } from './world-kinds.ts'

export interface SimulationOptions extends SettingOptions {
  /** Names of faults; default all. */
  readonly faults?: readonly string[] | undefined
}

/** A run as it can be repeated, and made smaller. */
export interface Scenario {
  readonly setting: Setting
  readonly faults: readonly PlannedFault[]
  /** Operations that are left out. */
  readonly leftOut: ReadonlySet<number>
}

/** How each world is made, and its faults. */
const worlds: Readonly<
  Record<
    WorldKind,
    { readonly make: (options: SettingOptions) => Setting; readonly faults: readonly string[] }
  >
> = {
  events: { make: makeSetting, faults: faultNames },
  mirror: { make: makeMirrorWorld, faults: mirrorFaultNames },
  history: { make: makeHistoryWorld, faults: historyFaultNames },
}

export function scenarioOf(options: SimulationOptions): Scenario {
  const { make, faults } = worlds[options.world ?? 'events']
  const names = options.faults ?? faults
  const setting = make({ ...options, hasStorms: names.length > 0 })
  return {
    setting,
    faults: planFaults(setting, names),
    leftOut: new Set(),
  }
}

export function runScenario(
  scenario: Scenario,
  trace: Pick<WorldOptions, 'onTrace' | 'tracesMessages'> = {},
): RunResult {
  const { setting, faults, leftOut } = scenario
  const keeps = leftOut.size === 0 ? undefined : (operation: number) => !leftOut.has(operation)
  return new World({ setting, faults, keeps, ...trace }).run()
}

/**
 * Leaves out faults, operations and time as long as the same guarantee is still violated. Each
 * attempt is a whole run, so this ends after `attemptsMax`, with the smallest run so far.
 */
export function shorten(
  failing: Scenario,
  result: RunResult,
  limits: { readonly attemptsMax: number; isOver(): boolean },
): { readonly scenario: Scenario; readonly result: RunResult; readonly attempts: number } {
  let scenario = failing
  let best = result
  let attempts = 0
  const attempt = (smaller: Scenario): boolean => {
    if (attempts >= limits.attemptsMax || limits.isOver()) return false
    attempts++
    const outcome = runScenario(smaller)
    if (outcome.violation?.guarantee !== result.violation?.guarantee) return false
    scenario = smaller
    best = outcome
    return true
  }
  const { setting } = scenario
  const endMs = Math.ceil(best.violation?.atMs ?? setting.durationMs)
  if (endMs < setting.durationMs) {
    const storms = setting.storms.filter(({ begin }) => begin < endMs)
    const faults = scenario.faults.filter(({ at }) => at < endMs)
    attempt({ ...scenario, faults, setting: { ...setting, durationMs: endMs, storms } })
  }
  leaveOut(scenario.faults, (faults) => attempt({ ...scenario, faults }))
  const operations = Array.from({ length: best.numbered }, (_, index) => index + 1)
  leaveOut(operations, (kept) => {
    const keeps = new Set(kept)
    const leftOut = new Set(operations.filter((operation) => !keeps.has(operation)))
    return attempt({ ...scenario, leftOut })
  })
  return { scenario, result: best, attempts }
}

/** Tries to leave out halves, then quarters and so on, of what remains. */
function leaveOut<Item>(all: readonly Item[], attempt: (kept: readonly Item[]) => boolean): void {
  let kept = all
  for (let size = Math.ceil(kept.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let start = 0; start < kept.length; ) {
      const without = [...kept.slice(0, start), ...kept.slice(start + size)]
      if (attempt(without)) kept = without
      else start += size
    }
  }
}
