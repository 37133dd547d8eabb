/** Everything about an archive and its clients that follows from the seed. */
import type { Random } from '../../support/random.ts'
import { usualWallTime, type WallTime } from '../kernel/process.ts'

export interface HistorySetting {
  /** In most runs days pass in minutes: then files are merged, and objects without a name are deleted. */
  readonly wall: WallTime
  /** Otherwise the wall clocks of replicas are wrong by hours, and jump. */
  readonly areClocksExact: boolean
  readonly segmentMs: number
  readonly segmentBytes: number
  /** Names that clients use again and again. */
  readonly hotNames: number
  /** The length of a note; with long ones, reading all events takes several pages. */
  readonly noteLength: number
}

const minute = 60_000
const day = 24 * 60 * minute
/** Without the note. */
const eventBytes = 500
export function makeHistorySetting(random: Random, durationMs: number): HistorySetting {
  // A day takes 7 minutes, or 86 seconds.
  const rate = random.pick([1, 200, 200, 1_000])
  const noteLength = random.pick([20, 20, 20, 5_000])
  // Midnight is within every run.
  const untilMidnightMs = random.between(0, Math.min(day, durationMs * rate))
  return {
    wall: { startMs: usualWallTime.startMs - Math.floor(untilMidnightMs), rate },
    areClocksExact: random.chance(0.6),
    segmentMs: random.pick([2_000, 5_000, 10_000]),
    segmentBytes: random.pick([20, 2_000]) * (eventBytes + noteLength),
    hotNames: random.pick([4, 40]),
    noteLength,
  }
}
