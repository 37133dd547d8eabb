/** What a person on call asks, measured on all events. */

import { parseFieldSelector } from '../../src/api/selectors/field-selector.ts'
import { parseLabelSelector } from '../../src/api/selectors/label-selector.ts'
import type { CachedStorage } from '../../src/cache/cached-storage.ts'
import { aLane } from '../../src/lib/run-queue.fixture.ts'
import { eventSelector } from '../../src/registry/read/event-selector.ts'
import { beginning } from '../../src/storage/resource-version.ts'
import type { EventScope, EventSelector, ListOptions } from '../../src/storage/storage.ts'
import { lastMs, objectOf } from './events.ts'
import type { Figures } from './figures.ts'
import { quantile } from './quantile.ts'

const { signal } = new AbortController()
const everyLabel = parseLabelSelector('')
const all: EventScope = { cluster: 'local', namespace: undefined }
const rounds = 500

export interface QuestionOptions {
  readonly storage: CachedStorage
  readonly figures: Figures
  /** The number of events. */
  readonly count: number
}

export async function measureQuestions(options: QuestionOptions): Promise<void> {
  const { figures, count } = options
  const random = () => objectOf(Math.floor(Math.random() * count))
  const page = async (name: string, atMostMs: number, query: () => Query) => {
    const times: number[] = []
    let found = 0
    for (let n = 0; n < rounds; n++) {
      const { scope = all, selector, ...others } = query()
      const before = performance.now()
      const read = await options.storage.list(scope, {
        lane: aLane(),
        limit: 500,
        signal,
        notOlderThan: beginning,
        selector: selectorOf(selector, count),
        ...others,
      })
      times.push(performance.now() - before)
      found = read.items.length
      await new Promise(setImmediate)
    }
    figures.note(`${name} (${found} events), median`, quantile(times, 0.5), 'ms')
    figures.check(`${name}, p99`, quantile(times, 0.99), { atMost: atMostMs, unit: 'ms' })
  }
  await page('since=20m, newest first, page of 500', 20, () => ({
    selector: 'since=20m',
    order: 'newest',
  }))
  await page('since=20m,type=Warning of one namespace, newest first', 20, () => ({
    selector: 'since=20m,type=Warning',
    order: 'newest',
    scope: { cluster: 'local', namespace: random().namespace },
  }))
  await page('since=1d,until=23h, oldest first, page of 500', 20, () => ({
    selector: 'since=1d,until=23h',
    order: 'oldest',
  }))
  await page('mentions by name', 2, () => ({ selector: `mentions=pod/${random().name}` }))
  await page('mentions by uid, newest first', 2, () => ({
    selector: `mentions=${random().uid}`,
    order: 'newest',
  }))
}

type Query = Partial<Omit<ListOptions, 'selector'>> & {
  readonly selector: string
  readonly scope?: EventScope
}

export function selectorOf(text: string, count: number): EventSelector | undefined {
  return eventSelector(everyLabel, parseFieldSelector(text), lastMs(count))
}
