import { EVENT_TYPES } from '../../api/validation/event-validation.ts'
import type { Requires } from '../../storage/requires.ts'

/** Reasons why a selector can hardly match: an empty list would look as if nothing had happened. */
export function selectorWarnings(requires: Requires | undefined): readonly string[] {
  const { type, sinceMs, untilMs } = requires ?? {}
  const warnings: string[] = []
  if (type !== undefined && !EVENT_TYPES.some((known) => known === type)) {
    warnings.push(`type=${type}: the types of events are ${EVENT_TYPES.join(' and ')}`)
  }
  if (sinceMs !== undefined && untilMs !== undefined && sinceMs >= untilMs) {
    warnings.push(
      'since is not before until: durations count back from now, so since is the longer one',
    )
  }
  return warnings
}
