import type { Patch } from '../kernel/interception.ts'
import type { WorldKind } from '../world-kinds.ts'

/** A bug that the simulation must find: a realistic mistake in one place of the production code. */
export interface PlantedFault {
  readonly name: string
  /** The part of the engine, and the guarantee that it breaks. */
  readonly component: string
  readonly breaks: string
  /** What the author of the bug did wrong. */
  readonly mistake: string
  readonly patches: readonly Patch[]
  /** The world that finds it; default: clients of the event API. */
  readonly world?: Exclude<WorldKind, 'events'>
  /** Kinds of faults that lead to it sooner than all kinds together; default all. */
  readonly faults?: readonly string[]
  /** Operations per simulated second; default: by the world. */
  readonly operations?: number
  /** Simulated minutes of each run; see `search.ts` for the default. */
  readonly minutes?: number
}
