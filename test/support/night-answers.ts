/** What a server answers about a recorded night, by kubectl, and what is wrong with it. */
import assert from 'node:assert/strict'
import type { Kubectl } from './kubectl.ts'
import {
  type Buckets,
  fiveMinutes,
  type Night,
  type NightEvent,
  trueHistogram,
} from './recorded-night.ts'
import type { Subject } from './recorder-styles.ts'

export interface Asked {
  readonly kubectl: Kubectl
  /** Its address, with the path of a cluster. */
  readonly server: string
}

/** The first rows of the list of incidents. */
const ROWS = 5

export interface Incident {
  readonly what: string
  readonly namespace: string
  readonly workload: string
  /** Undefined if any of the workload will do. */
  readonly reason: string | undefined
}

/** What happened that night, apart from routine. */
export const INCIDENTS: readonly Incident[] = [
  { what: 'the crash loop', namespace: 'shop', workload: 'Deployment/checkout', reason: 'BackOff' },
  {
    what: 'the eviction',
    namespace: 'media',
    workload: 'Deployment/thumbnails',
    reason: 'Evicted',
  },
  { what: 'the rollout', namespace: 'shop', workload: 'Deployment/web', reason: undefined },
]

/** What the server can know of a night: the events that were sent to it. */
export interface SentNight extends Pick<Night, 'sinceMs' | 'untilMs'> {
  readonly events: readonly SentEvent[]
}

export interface SentEvent extends Pick<NightEvent, 'type' | 'reason' | 'times'> {
  readonly about: Pick<Subject, 'namespace' | 'name'>
}

/** Checks the list of incidents with and without bounds of time; returns its first rows. */
export async function checkIncidents(
  night: SentNight,
  asked: Asked,
  incidents: readonly Incident[] = INCIDENTS,
): Promise<readonly string[]> {
  const window = `since=${timeOf(night.sinceMs)},until=${timeOf(night.untilMs)}`
  const lists = [
    await printed(asked, 'get', 'eventsummaries', '-A'),
    await printed(asked, 'get', 'eventsummaries', '-A', '--field-selector', window),
  ]
  for (const [, ...rows] of lists) {
    const first = rows.slice(0, ROWS).map((row) => row.split(/ {2,}/))
    for (const { what, namespace, workload, reason } of incidents) {
      const row = first.find(
        (cells) =>
          cells[0] === namespace &&
          cells[2] === workload &&
          (reason === undefined || cells[3] === reason),
      )
      assert.ok(row, `${what} is not in the first rows:\n${rows.slice(0, 20).join('\n')}`)
      const count = countOf(night.events, { namespace, workload, reason: row[3] ?? '' })
      if (reason !== undefined) assert.equal(Number(row[5]), count, `${what}: ${row.join('  ')}`)
    }
  }
  return lists[1]?.slice(0, ROWS + 1) ?? []
}

function countOf(
  events: readonly SentEvent[],
  { namespace, workload, reason }: { namespace: string; workload: string; reason: string },
): number {
  const prefix = `${workload.slice(workload.indexOf('/') + 1)}-`
  return events
    .filter(({ about }) => about.namespace === namespace && about.name.startsWith(prefix))
    .filter((event) => event.reason === reason)
    .reduce((sum, { times }) => sum + times.length, 0)
}

/** What a histogram says about one name in one bucket. */
interface Cell {
  readonly occurrences: number
  readonly isEstimated: boolean
}

type Shown = readonly ReadonlyMap<string, Cell>[]

export interface HistogramFigures {
  readonly by: string
  readonly total: number
  /** The counts that are shown, and how many of them are marked as estimates. */
  readonly cells: number
  readonly estimated: number
  /** Occurrences that are in another bucket than they should be, by estimate. */
  readonly misplaced: number
}

/**
 * Checks the histograms in buckets of five minutes: what is not marked as an estimate must be exact,
 * and nothing may be lost or added.
 */
export async function checkHistograms(
  night: SentNight,
  asked: Asked,
): Promise<readonly HistogramFigures[]> {
  const bounds = fiveMinutes(night)
  const figures: HistogramFigures[] = []
  for (const by of ['type', 'reason'] as const) {
    const shown = await histogram(asked, { bounds, by })
    const expected = trueHistogram(night.events, { bounds, by })
    figures.push({ by, ...compare(shown, expected) })
  }
  return figures
}

function compare(shown: Shown, expected: Buckets): Omit<HistogramFigures, 'by'> {
  const cells = shown.flatMap((bucket) => [...bucket.values()])
  const total = sum(cells.map(({ occurrences }) => occurrences))
  assert.equal(total, sum(expected.flatMap((bucket) => [...bucket.values()])))
  let misplaced = 0
  for (const [index, bucket] of expected.entries()) {
    const found = shown[index] ?? new Map<string, Cell>()
    for (const name of new Set([...bucket.keys(), ...found.keys()])) {
      const { occurrences = 0, isEstimated = false } = found.get(name) ?? {}
      const difference = occurrences - (bucket.get(name) ?? 0)
      assert.ok(
        isEstimated || difference === 0,
        `${name} in bucket ${index}: ${difference} too many`,
      )
      misplaced += Math.abs(difference) / 2
    }
  }
  const estimated = cells.filter(({ isEstimated }) => isEstimated).length
  return { total, cells: cells.length, estimated, misplaced }
}

async function histogram(
  asked: Asked,
  { bounds, by }: { readonly bounds: readonly number[]; readonly by: string },
): Promise<Shown> {
  const [since = 0, until = 0] = [bounds[0], bounds.at(-1)]
  const options = [
    `since=${timeOf(since)}`,
    `until=${timeOf(until)}`,
    `buckets=${bounds.length - 1}`,
    `by=${by}`,
  ]
  const selector = options.join(',')
  const lines = await printed(
    asked,
    'get',
    'eventhistograms',
    '-A',
    '--field-selector',
    selector,
    '-o',
    'json',
  )
  const { items } = JSON.parse(lines.join('\n')) as { readonly items: readonly Bucket[] }
  assert.deepEqual(
    items.map(({ startTime }) => Date.parse(startTime)),
    bounds.slice(0, -1),
  )
  return items.map(
    ({ counts }) =>
      new Map(
        counts.map(({ name, occurrences, estimated = false }) => [
          name,
          { occurrences, isEstimated: estimated },
        ]),
      ),
  )
}

interface Bucket {
  readonly startTime: string
  readonly counts: readonly {
    readonly name: string
    readonly occurrences: number
    readonly estimated?: true
  }[]
}

async function printed({ kubectl, server }: Asked, ...args: readonly string[]): Promise<string[]> {
  const { code, stdout, stderr } = await kubectl.run(`--server=${server}`, ...args)
  assert.equal(code, 0, stderr)
  return stdout.trimEnd().split('\n')
}

function timeOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
