/** Everything about a mirrored cluster and its origin that follows from the seed. */
import type { Random } from '../../support/random.ts'

export interface MirrorSetting {
  /** The namespaces of the clusters file; undefined: all, in one stream. */
  readonly namespaces: readonly string[] | undefined
  readonly deletes: 'never' | 'explicit'
  readonly originTtlMs: number
  /** How many names the origin uses. */
  readonly keys: number
  readonly writesPerSecond: number
  /** The same while a storm lasts: in some runs more than the origin's watches can deliver. */
  readonly stormWritesPerSecond: number
  /** How many changes a message of a watch has at most while a storm lasts. */
  readonly watchChunk: number
  /** Kubernetes sends no bookmarks for events; tidings does. */
  readonly hasBookmarks: boolean
  /**
   * Whether ages matter within the run: then the wall clocks of replicas are right to a second, as
   * the mirror requires. Otherwise they are wrong by hours and jump.
   */
  readonly needsClocks: boolean
}

const minute = 60_000
const floodPerSecond = 2_000
export const namespaceNames = ['alpha', 'beta', 'gamma'] as const
/** The name of the mirrored cluster. */
export const mirroredCluster = 'mirrored'

export function makeMirrorSetting(
  random: Random,
  options: { readonly writesPerSecond?: number | undefined },
): MirrorSetting {
  const needsClocks = random.chance(0.5)
  const writesPerSecond = options.writesPerSecond ?? random.pick([20, 60, 200])
  const isFlooded = random.chance(0.5)
  return {
    namespaces: random.chance(0.5) ? undefined : namespaceNames,
    deletes: needsClocks && random.chance(0.6) ? 'explicit' : 'never',
    originTtlMs: random.pick([3, 4, 60]) * minute,
    keys: isFlooded ? 60 : random.pick([60, 400, 1_500]),
    writesPerSecond,
    stormWritesPerSecond: isFlooded ? floodPerSecond : writesPerSecond,
    watchChunk: isFlooded ? 2 : 250,
    hasBookmarks: random.chance(0.5),
    needsClocks,
  }
}
