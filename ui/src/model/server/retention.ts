/** Describes how long events are retained. */
import { bytesText, counted } from '../numbers.ts'
import { utcTime } from '../times.ts'

export interface Lifetime {
  /**
   * What the lifetime applies to: `Warning`, `reason=Pulling|Pulled controller=kubelet`; empty for
   * all other events.
   */
  readonly selects: string
  /** `7d`, `1h30m`, `never`. */
  readonly lifetime: string
}

export interface Budget {
  readonly events?: number | undefined
  readonly bytes?: number | undefined
}

/** What is archived, behind the events in memory. */
export interface ArchivedHistory {
  /** The start of the oldest day. Undefined if nothing is archived yet. */
  readonly oldestMs: number | undefined
  /** What was last seen before comes from the archive. Undefined if memory has everything. */
  readonly untilMs: number | undefined
  /** How far the archive is behind. */
  readonly lagMs: number
}

/** What is retained of a namespace, of a cluster or of all clusters. */
export interface RetentionWindow {
  readonly events: number
  /** When the oldest event was last seen. */
  readonly oldestMs: number | undefined
  /** In order of precedence. Undefined if they differ between clusters. */
  readonly lifetimes: readonly Lifetime[] | undefined
  /** Number of lifetimes that the server did not list. */
  readonly hiddenRules: number
  readonly budget: Budget | undefined
  /** Events deleted by budgets; undefined if unknown. */
  readonly evicted: number | undefined
  /** Writes rejected by the replica since its start; undefined if unknown. */
  readonly refused: number | undefined
  /** Undefined if the server archives nothing. */
  readonly history: ArchivedHistory | undefined
}

/** `since 2025-11-16`, in UTC, as days are archived. */
export function historyText({ oldestMs }: ArchivedHistory): string {
  return oldestMs === undefined ? 'empty so far' : `since ${utcTime(oldestMs).slice(0, 10)}`
}

/** Whether a part of what happened since this time is read from history. */
export function reachesHistory(window: RetentionWindow | undefined, fromMs: number): boolean {
  return fromMs < (window?.history?.untilMs ?? Number.NEGATIVE_INFINITY)
}

/** Events from before this time exist neither in memory nor in history. */
export function horizonOf({ oldestMs, history }: RetentionWindow): number | undefined {
  return chosen([oldestMs, history?.oldestMs], Math.min)
}

const UNIT_NAMES: Readonly<Record<string, string>> = {
  d: 'day',
  h: 'hour',
  m: 'minute',
  s: 'second',
  ms: 'millisecond',
}

/** `7d` becomes `7 days`, `1h30m` becomes `1 hour 30 minutes`. Returns other texts unchanged. */
export function lifetimeText(lifetime: string): string {
  if (lifetime === 'never') return 'forever'
  if (!/^(\d+(\.\d+)?(ms|[dhms]))+$/.test(lifetime)) return lifetime
  return [...lifetime.matchAll(/([\d.]+)([a-z]+)/g)]
    .map(([, number = '', unit = '']) => counted(Number(number), UNIT_NAMES[unit] ?? unit))
    .join(' ')
}

/** `Events are kept 7 days after their last write (Warnings 14 days)`; in memory, with history. */
export function retentionText(window: RetentionWindow): string {
  const text = lifetimesText(window)
  return window.history === undefined ? text : text.replace('are kept', 'stay in memory')
}

function lifetimesText({ lifetimes, hiddenRules }: RetentionWindow): string {
  if (lifetimes === undefined) return 'Retention differs between clusters'
  const of = (selects: string): string | undefined =>
    lifetimes.find((one) => one.selects === selects)?.lifetime
  const [warnings, normals, others] = [of('Warning'), of('Normal'), of('')]
  const more = lifetimes.length - [warnings, normals, others].filter(isThere).length + hiddenRules
  const rest = more === 0 ? '' : `; ${counted(more, 'further rule')}`
  if (warnings === undefined && normals === undefined) {
    return others === undefined ? '' : `Events are kept ${fromWriteText(others)}${rest}`
  }
  const usual = normals ?? others
  if (usual === undefined) return `Warnings are kept ${fromWriteText(warnings ?? '')}${rest}`
  const aside = warnings === undefined ? othersText(others) : `Warnings ${lifetimeText(warnings)}`
  const what = normals === undefined ? 'Events' : 'Normal events'
  return `${what} are kept ${fromWriteText(usual)}${aside === '' ? '' : ` (${aside})`}${rest}`
}

/**
 * An event may have happened long before it was written, and may thus be older than its lifetime.
 */
function fromWriteText(lifetime: string): string {
  return `${lifetimeText(lifetime)}${lifetime === 'never' ? '' : ' after their last write'}`
}

function othersText(others: string | undefined): string {
  return others === undefined ? '' : `others ${lifetimeText(others)}`
}

function isThere(value: string | undefined): boolean {
  return value !== undefined
}

/** `at most 100,000 events and 200 MiB` */
export function budgetText({ events, bytes }: Budget): string {
  const parts = [
    ...(events === undefined ? [] : [counted(events, 'event')]),
    ...(bytes === undefined ? [] : [bytesText(bytes)]),
  ]
  return parts.length === 0 ? '' : `at most ${parts.join(' and ')}`
}

/** Merges the windows of several clusters. */
export function joinedWindows(windows: readonly RetentionWindow[]): RetentionWindow | undefined {
  const [first, ...others] = windows
  if (first === undefined || others.length === 0) return first
  const isSame = others.every(
    ({ lifetimes }) => JSON.stringify(lifetimes) === JSON.stringify(first.lifetimes),
  )
  const archives = windows.flatMap(({ history }) => history ?? [])
  return {
    events: windows.reduce((sum, { events }) => sum + events, 0),
    oldestMs: chosen(
      windows.map(({ oldestMs }) => oldestMs),
      Math.min,
    ),
    lifetimes: isSame ? first.lifetimes : undefined,
    hiddenRules: isSame ? first.hiddenRules : 0,
    // A budget applies to one cluster.
    budget: undefined,
    evicted: sumOf(windows.map(({ evicted }) => evicted)),
    refused: sumOf(windows.map(({ refused }) => refused)),
    history:
      archives.length === 0
        ? undefined
        : {
            oldestMs: chosen(
              archives.map(({ oldestMs }) => oldestMs),
              Math.min,
            ),
            untilMs: chosen(
              archives.map(({ untilMs }) => untilMs),
              Math.max,
            ),
            lagMs: Math.max(...archives.map(({ lagMs }) => lagMs)),
          },
  }
}

/** Undefined if all are. */
function chosen(
  times: readonly (number | undefined)[],
  choose: (...ms: number[]) => number,
): number | undefined {
  const known = times.filter((ms) => ms !== undefined)
  return known.length === 0 ? undefined : choose(...known)
}

/** Undefined if any count is. */
function sumOf(counts: readonly (number | undefined)[]): number | undefined {
  return counts.includes(undefined)
    ? undefined
    : counts.reduce<number>((sum, count = 0) => sum + count, 0)
}
