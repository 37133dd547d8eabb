/**
 * Queries to the real API, engine and etcd while other writes go on. Each answer must be that of the
 * plain model for the state at the version of the answer.
 */
import { aLane } from '../../../src/lib/run-queue.fixture.ts'
import { readPolicy } from '../../../src/retention/policy-file.ts'
import { startEtcd } from '../../support/etcd.ts'
import { EventApiUnderTest } from '../../support/event-api.ts'
import { inParallel } from '../../support/load.ts'
import { Random } from '../../support/random.ts'
import { faultOf, type Reading, Refused, readAll } from './answers.ts'
import { History } from './history.ts'
import { MOMENT_MS } from './made-events.ts'
import { fieldSelectorOf, type MadeQuery, madeQuery, madeWatch } from './made-queries.ts'
import { ModelWatch } from './model-watch.ts'
import { plainEvent } from './plain-event.ts'
import { madeRules, plainLifetime, policyText } from './plain-policy.ts'
import type { Order } from './plain-query.ts'
import { madeSummary, summaryFault, summaryText } from './summary-answers.ts'
import { Writes } from './writes.ts'

export interface CampaignOptions {
  readonly seed: number
  readonly queries: number
  readonly onProgress?: (queries: number) => void
}

/** What was compared, so that a run that finds nothing shows that it looked. */
export interface Tally {
  queries: number
  pages: number
  /** Events in all answers. */
  events: number
  ordered: number
  /** Answers without an event. */
  empty: number
  summaries: number
  watches: number
  lifetimes: number
  /** Lists of an earlier state that was no longer in memory. */
  gone: number
  writes: number
}

const ASKERS = 16
/** Queries between two moves of the clock. */
const ROUND = 200
const WATCHES = 6
/** The share of summaries and histograms. */
const SUMMARIES = 0.1
/** The clock moves so many steps of the times of events at most, so that bounds meet them exactly. */
const STEPS_MAX = 20
/** The lifetime of events that no rule matches. */
const OTHERWISE_MS = 3_600_000

/** Resolves with what was compared; throws at the first difference, with the query. */
export async function campaign(options: CampaignOptions): Promise<Tally> {
  await using etcd = await startEtcd()
  const startMs = Math.floor(Date.now() / 1000) * 1000
  const clock = { nowMs: startMs }
  await using api = await EventApiUnderTest.start(etcd.endpoints, { now: () => clock.nowMs })
  await using history = new History(etcd.endpoints)
  await using writes = await Writes.start(api, options.seed, startMs)
  const tally: Tally = {
    queries: 0,
    pages: 0,
    events: 0,
    ordered: 0,
    empty: 0,
    summaries: 0,
    watches: 0,
    lifetimes: 0,
    gone: 0,
    writes: 0,
  }
  const random = new Random(options.seed)
  await history.at(await api.storage.currentVersion(new AbortController()))
  for (let from = 0; from < options.queries; from += ROUND) {
    const count = Math.min(ROUND, options.queries - from)
    const earlier = history.reached
    const asking = { ...options, api, history, tally, earlier, nowMs: clock.nowMs }
    await round(asking, { from, count })
    writes.check()
    clock.nowMs = startMs + (random.below(2 * STEPS_MAX) - STEPS_MAX) * MOMENT_MS
    options.onProgress?.(from + count)
  }
  tally.writes = writes.count
  return tally
}

/** Queries at one time of the clock, beside watches that see the writes meanwhile. */
async function round(
  asking: Asking,
  { from, count: queries }: { readonly from: number; readonly count: number },
): Promise<void> {
  const { api, history, tally, earlier, nowMs, seed } = asking
  await using stack = new AsyncDisposableStack()
  const watches: ModelWatch[] = []
  for (let index = 0; index < WATCHES; index++) {
    const query = madeWatch(new Random(seed ^ ((from + index) * 104_729)), nowMs)
    watches.push(stack.use(await ModelWatch.open(api, query, earlier)))
  }
  await inParallel(queries, ASKERS, (index) => ask(from + index, asking))
  const to = history.reached
  for (const watch of watches) {
    const fault = await watch.faultOf(history, { to, nowMs })
    if (fault !== undefined) throw new Error(`seed ${seed} (${textOf(watch.query)}): ${fault}`)
    tally.watches++
  }
  await checkLifetimes(asking, new Random(seed ^ (from * 15_485_863)))
  // No list of the next round is older.
  history.forgetBefore(earlier)
}

/** Every event must have the lifetime that a random policy file gives it. */
async function checkLifetimes(
  { api, tally, seed }: Pick<Asking, 'api' | 'tally' | 'seed'>,
  random: Random,
): Promise<void> {
  const rules = madeRules(random)
  const policy = readPolicy(policyText(rules), OTHERWISE_MS)
  const all = { cluster: undefined, namespace: undefined }
  const { signal } = new AbortController()
  const { items } = await api.storage.list(all, { lane: aLane(), limit: 10_000, signal })
  for (const stored of items) {
    const event = plainEvent(stored.key, stored.version, JSON.parse(stored.body.toString()))
    const [found, expected] = [policy.lifetimeOf(stored), plainLifetime(rules, event, OTHERWISE_MS)]
    tally.lifetimes++
    if (found !== expected) {
      const what = `${event.path} ${stored.body} lives ${found}, expected ${expected}`
      throw new Error(`seed ${seed}: ${what}, by ${JSON.stringify(rules)}`)
    }
  }
}

interface Asking extends Pick<CampaignOptions, 'seed'> {
  readonly api: EventApiUnderTest
  readonly history: History
  readonly tally: Tally
  /** A version that was the newest some time ago. */
  readonly earlier: number
  readonly nowMs: number
}

async function ask(index: number, asking: Asking): Promise<void> {
  const { nowMs, seed } = asking
  const random = new Random(seed + index * 7_919)
  if (!random.chance(SUMMARIES)) return askList(index, madeQuery(random, nowMs), asking)
  const made = madeSummary(random, nowMs)
  const fault = await summaryFault(made, asking)
  asking.tally.summaries++
  if (fault !== undefined) {
    throw new Error(`seed ${seed}, query ${index} (${summaryText(made)}): ${fault}`)
  }
}

async function askList(index: number, query: MadeQuery, asking: Asking): Promise<void> {
  const { api, history, earlier, nowMs, seed } = asking
  const fault = await readAll(api, query, earlier).then(
    async (reading) => {
      count(asking.tally, query, reading)
      const faults = orders(query).map((order) =>
        faultOf(history, { ...query, order }, { reading, nowMs }),
      )
      return (await Promise.all(faults)).every((each) => each !== undefined) ? faults[0] : undefined
    },
    (error: unknown) => {
      if (!mayBeGone(query, error)) return String(error)
      asking.tally.gone++
      return undefined
    },
  )
  if (fault !== undefined) {
    throw new Error(`seed ${seed}, query ${index} (${textOf(query)}): ${fault}`)
  }
}

/** Only memory has the order of time, and it does not retain every earlier state. */
function mayBeGone({ of, orderBy }: MadeQuery, error: unknown): boolean {
  const isEarlier = of === 'earlier' && orderBy !== undefined
  return isEarlier && error instanceof Refused && error.status === 410
}

/** The possible orders of an answer: a table that memory does not have is sorted by key. */
function orders({ of, orderBy, order }: MadeQuery): readonly Order[] {
  return of === 'earlier' && orderBy === undefined ? [order, 'key'] : [order]
}

function count(tally: Tally, query: MadeQuery, { items, remaining }: Reading): void {
  tally.queries++
  tally.pages += remaining.length + 1
  tally.events += items.length
  tally.ordered += query.order === 'key' ? 0 : 1
  tally.empty += items.length === 0 ? 1 : 0
}

function textOf(query: MadeQuery): string {
  return `${JSON.stringify(query)} fieldSelector ${fieldSelectorOf(query)}`
}
