import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { TopSources } from '../../registry/top-sources.ts'
import { CountedWrites } from '../../storage/counted-writes.ts'
import type { EventWrites } from '../../storage/storage.ts'
import { registerChangeMetrics, registerTopSourceMetrics } from './accounts.ts'

async function linesOf(registry: Registry): Promise<readonly string[]> {
  return (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
}

test('changes have a series per writer, change and outcome from the start', async () => {
  const registry = new Registry()
  const done = async (): Promise<never> => ({}) as never
  const writes: EventWrites = { create: done, update: done, delete: done }
  const writers = {
    client: new CountedWrites(writes),
    mirror: new CountedWrites(writes),
    retention: new CountedWrites(writes),
  }
  registerChangeMetrics(writers, registry)
  await writers.retention.delete({ cluster: 'local', namespace: 'a', name: 'b' })
  const lines = await linesOf(registry)
  assert.equal(lines.length, 3 * 3 * 2)
  const counted = lines.filter((line) => !line.endsWith(' 0'))
  const labels = '{writer="retention",change="deleted",outcome="applied"}'
  assert.deepEqual(counted, [`tidings_event_changes_total${labels} 1`])
})

test('only the top ten of a dimension have a series, and they go when their writes stop', async () => {
  const registry = new Registry()
  const clock = { ms: 0, now: () => clock.ms }
  const sources = new TopSources(clock)
  registerTopSourceMetrics(sources, registry)
  for (let user = 0; user < 100; user++) {
    for (let write = 0; write <= user; write++) sources.wrote(`user-${user}`, 'local')
  }
  const lines = await linesOf(registry)
  assert.equal(lines.length, 10)
  assert.match(lines[0] ?? '', /^tidings_top_source_rate\{dimension="user",value="user-99"\} /)
  assert.match(lines[9] ?? '', /user-90/)
  clock.ms = 60 * 60_000
  assert.deepEqual(await linesOf(registry), [])
})

test('names with few writes, or a small part of all, have no series', async () => {
  const registry = new Registry()
  const clock = { ms: 0, now: () => clock.ms }
  const sources = new TopSources(clock)
  registerTopSourceMetrics(sources, registry)
  for (; clock.ms < 60_000; clock.ms += 100) {
    for (let at = 0; at < 100; at++) sources.wrote('flood', 'local')
    for (let at = 0; at < 2; at++) sources.wrote('twenty', 'local')
    sources.wrote('ten', 'prod')
    if (clock.ms % 2_000 === 0) sources.wrote('rare', 'quiet')
  }
  const names = async () =>
    (await linesOf(registry)).map((line) => /value="([^"]*)"/.exec(line)?.[1])
  assert.deepEqual(await names(), ['flood', 'twenty', 'ten'])
  // Twenty a second of 10,000 are less than one in 256.
  for (let at = 0; at < 300_000; at++) sources.wrote('flood', 'local')
  assert.deepEqual(await names(), ['flood'])
})
