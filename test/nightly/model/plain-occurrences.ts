/** When an event was observed, by what each write to it told. */

/** Some occurrences of which one write told. */
export interface Sighting {
  readonly count: number
  /** The first of them, or, for a write that raised the count by more than one, the last before them. */
  readonly fromMs: number
  readonly toMs: number
  readonly by: 'first write' | 'raise'
}

interface Seen {
  readonly firstSeenMs: number
  readonly lastSeenMs: number
  readonly occurrences: number
}

/** The sightings of an event after a write; `before` is the event that it replaced, with the same uid. */
export function sightingsOf(
  now: Seen,
  before?: Seen & { readonly sightings: readonly Sighting[] },
): readonly Sighting[] {
  const raised = now.occurrences - (before?.occurrences ?? 0)
  const isUnknown = before === undefined || raised < 0
  // An event that was never raised is known only by its own fields.
  const wasRaised = before?.sightings.some(({ by }) => by === 'raise') ?? false
  if (isUnknown || (raised === 0 && !wasRaised)) return [firstSighting(now)]
  const known = before.sightings.map((one) => notLaterThan(one, now.lastSeenMs))
  return stored(raised === 0 ? known : [...known, raise(known, now, raised)], now)
}

/** The last time of an event may be set back. */
function notLaterThan(sighting: Sighting, lastMs: number): Sighting {
  const { fromMs, toMs } = sighting
  return { ...sighting, fromMs: Math.min(fromMs, lastMs), toMs: Math.min(toMs, lastMs) }
}

function firstSighting({ firstSeenMs, lastSeenMs, occurrences: count }: Seen): Sighting {
  const isRange = count > 1 && firstSeenMs > 0 && firstSeenMs < lastSeenMs
  return { count, fromMs: isRange ? firstSeenMs : lastSeenMs, toMs: lastSeenMs, by: 'first write' }
}

function raise(known: readonly Sighting[], { lastSeenMs: toMs }: Seen, count: number): Sighting {
  const knownMs = known.at(-1)?.toMs ?? 0
  return { count, fromMs: count === 1 ? toMs : knownMs, toMs, by: 'raise' }
}

/** Only whole seconds are stored, except for the time in the event itself. */
function stored(sightings: readonly Sighting[], { lastSeenMs }: Seen): readonly Sighting[] {
  // Sightings of the same five minutes and so on would have to be merged.
  if (sightings.length > 32) throw new Error('the model does not merge sightings')
  return sightings.map((one, index) => {
    const isNewest = index === sightings.length - 1
    const isLast = isNewest && secondOf(one.toMs) === secondOf(lastSeenMs)
    const toMs = isLast ? lastSeenMs : secondOf(one.toMs)
    const fromMs = secondOf(one.fromMs) === secondOf(one.toMs) ? toMs : secondOf(one.fromMs)
    return { ...one, fromMs, toMs }
  })
}

function secondOf(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000
}

/** Whether the first of them was at `fromMs`, and not later. */
function isAtBegin({ by, count }: Sighting): boolean {
  return by === 'first write' || count === 1
}

/** How many of them were before a time, when they are distributed evenly. */
export function countBefore(sighting: Sighting, ms: number): number {
  const { count, fromMs, toMs } = sighting
  if (ms <= fromMs) return 0
  if (ms > toMs) return count
  const share = (steps: number): number => Math.ceil(((ms - fromMs) * steps) / (toMs - fromMs))
  return Math.min(count - 1, isAtBegin(sighting) ? share(count - 1) : share(count) - 1)
}

/** When one of them was. */
function momentOf(sighting: Sighting, index: number): number {
  const { count, fromMs, toMs } = sighting
  const [step, steps] = isAtBegin(sighting) ? [index, count - 1] : [index + 1, count]
  return steps === 0 ? toMs : Math.floor(fromMs + ((toMs - fromMs) * step) / steps)
}

export interface Window {
  readonly sinceMs: number
  readonly untilMs: number
}

export interface SeenWithin {
  readonly count: number
  readonly firstMs: number
  readonly lastMs: number
  readonly isEstimated: boolean
}

/** The occurrences of an event within a window. */
export function seenWithin(
  event: Seen & { readonly sightings: readonly Sighting[] },
  { sinceMs, untilMs }: Window,
): SeenWithin {
  const { firstSeenMs, lastSeenMs, occurrences, sightings } = event
  const isLastWithin = lastSeenMs >= sinceMs && lastSeenMs < untilMs
  if (isLastWithin && (firstSeenMs >= sinceMs || occurrences === 1)) {
    const whole = { count: occurrences, isEstimated: false }
    return { ...whole, firstMs: firstSeenMs, lastMs: lastSeenMs }
  }
  const parts = sightings
    .map((sighting) => ({
      sighting,
      from: countBefore(sighting, sinceMs),
      to: countBefore(sighting, untilMs),
    }))
    .filter(({ from, to }) => from < to)
  const last = parts.at(-1)
  return {
    count: parts.reduce((sum, { from, to }) => sum + to - from, 0),
    firstMs: last === undefined ? 0 : firstSeenMs,
    lastMs: last === undefined ? 0 : momentOf(last.sighting, last.to - 1),
    isEstimated: sightings.some(
      ({ count, fromMs, toMs }) =>
        count > 1 && [sinceMs, untilMs].some((ms) => fromMs < ms && ms <= toMs),
    ),
  }
}

/** Whether it is only an estimate how many of the sighting were in a bucket. */
export function isEstimatedIn(sighting: Sighting, { sinceMs, untilMs }: Window): boolean {
  const { count, fromMs, toMs, by } = sighting
  return count > 1 && (by === 'first write' || fromMs < sinceMs || toMs >= untilMs)
}
