/** The keyboard's position: a lane, or one of its events. */
import type { Lane } from './lanes.ts'

export interface Place {
  readonly lane: number
  /** -1 for the lane itself. */
  readonly event: number
}

/** Number of lanes that Page Up and Page Down move by. */
const PAGE = 10

/** Undefined if the key does not move the position. */
export function nextPlace(
  { lane, event }: Place,
  key: string,
  lanes: readonly Lane[],
): Place | undefined {
  const toLane = (to: number): Place | undefined => {
    const next = Math.min(lanes.length - 1, Math.max(0, to))
    return next === lane ? undefined : { lane: next, event: -1 }
  }
  const count = lanes[lane]?.events.length ?? 0
  switch (key) {
    case 'ArrowUp':
      return toLane(lane - 1)
    case 'ArrowDown':
      return toLane(lane + 1)
    case 'PageUp':
      return toLane(lane - PAGE)
    case 'PageDown':
      return toLane(lane + PAGE)
    case 'Home':
      return toLane(0)
    case 'End':
      return toLane(lanes.length - 1)
    case 'ArrowLeft':
      // The first step goes to the newest event, which is at the right end.
      return count === 0
        ? undefined
        : { lane, event: Math.max(0, (event === -1 ? count : event) - 1) }
    case 'ArrowRight':
      return count === 0 ? undefined : { lane, event: Math.min(count - 1, event + 1) }
    default:
      return undefined
  }
}
