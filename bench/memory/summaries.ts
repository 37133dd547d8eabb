import type { CachedStorage } from '../../src/cache/cached-storage.ts'
import { aLane } from '../../src/lib/run-queue.fixture.ts'
import { allEvents } from '../../src/storage/event-scope.ts'
import { valueRequirement } from '../../src/storage/requires.ts'
import { beginning } from '../../src/storage/resource-version.ts'
import type { EventSelector } from '../../src/storage/storage.ts'
import type { GroupField } from '../../src/storage/summary.ts'
import type { Figures } from './figures.ts'
import type { LoopHolds } from './loop-holds.ts'

/** The figure is for so many events; for more it is in proportion. */
const events = 100_000
const rounds = 5

const pulled: EventSelector = {
  matches: ({ fields }) => fields.reason === 'Pulled',
  requires: { values: [valueRequirement('reason', '=', 'Pulled')], isAll: true },
}

/** The incident list. */
const incidents: readonly GroupField[] = ['namespace', 'workload', 'reason', 'pattern']

/** The median time of a summary of 100,000 events; a seventh of all have the same reason. */
export async function measureSummaries(
  storage: CachedStorage,
  figures: Figures,
  loop: LoopHolds,
): Promise<void> {
  await measureChoices(storage, figures)
  await measureIncidents(storage, figures, loop)
}

/** In proportion to a million events. */
async function measureIncidents(
  storage: CachedStorage,
  figures: Figures,
  loop: LoopHolds,
): Promise<void> {
  const { signal } = new AbortController()
  const lane = aLane()
  const options = { groupBy: incidents, order: 'newest', groupsMax: 500 } as const
  const times: number[] = []
  loop.take()
  for (let round = 0; round < rounds; round++) {
    const before = process.cpuUsage()
    const asked = { ...options, notOlderThan: beginning, signal, lane }
    await storage.summaries.summarize(allEvents, asked)
    const { user, system } = process.cpuUsage(before)
    times.push((user + system) / 1_000)
  }
  const medianMs = times.sort((one, other) => one - other)[Math.floor(rounds / 2)] ?? 0
  const perMillion = (medianMs * 1_000_000) / storage.countIn(allEvents)
  const name = 'by workload, reason and pattern'
  figures.check(`summary of a million ${name}, CPU`, perMillion, { atMost: 300, unit: 'ms' })
  figures.check(`longest hold of the loop by it, CPU`, loop.take().ownMs, {
    atMost: 20,
    unit: 'ms',
  })
}

async function measureChoices(storage: CachedStorage, figures: Figures): Promise<void> {
  const { signal } = new AbortController()
  const choices: readonly (readonly [string, EventSelector | undefined, readonly GroupField[]])[] =
    [
      ['of one reason by namespace', pulled, ['namespace']],
      ['of all by reason and controller', undefined, ['reason', 'controller']],
    ]
  const lane = aLane()
  for (const [name, selector, groupBy] of choices) {
    const times: number[] = []
    let counted = 0
    for (let round = 0; round < rounds; round++) {
      const before = performance.now()
      const options = { selector, groupBy, groupsMax: 500, notOlderThan: beginning, signal, lane }
      const { groups } = await storage.summaries.summarize(allEvents, options)
      times.push(performance.now() - before)
      counted = groups.reduce((sum, group) => sum + group.events, 0)
    }
    const medianMs = times.sort((one, other) => one - other)[Math.floor(rounds / 2)] ?? 0
    figures.note(`summary ${name}, ${counted} events, median`, medianMs, 'ms')
    figures.check(
      `summary ${name}, per ${events} events`,
      (medianMs * events) / Math.max(counted, events),
      {
        atMost: 300,
        unit: 'ms',
      },
    )
  }
}
