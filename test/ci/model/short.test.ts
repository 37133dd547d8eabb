/** `npm test -- model` compares 100,000 queries. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compare } from '../../nightly/model/answers.ts'
import { campaign } from '../../nightly/model/campaign.ts'
import { plainEvent } from '../../nightly/model/plain-event.ts'
import { testSeed } from '../../support/seed.ts'

const QUERIES = 2_000

test('answers like a plain filter and sort during concurrent writes', async (t) => {
  const seed = testSeed()
  t.diagnostic(`seed ${seed}`)
  const tally = await campaign({ seed, queries: QUERIES })
  t.diagnostic(JSON.stringify(tally))
  assert.equal(tally.queries + tally.gone + tally.summaries, QUERIES)
  assert.ok(tally.gone < QUERIES * 0.05, 'nearly all lists are answered')
  assert.ok(tally.empty < QUERIES * 0.6, 'queries find events')
  assert.ok(tally.writes > 100, 'other writes go on')
})

test('finds an answer with a missing, surplus or misplaced event, or a wrong count', () => {
  const expected = [11, 12, 13].map((version) =>
    plainEvent({ cluster: 'c', namespace: 'n', name: `e-${version}` }, version, {}),
  )
  const faultOf = (
    items: readonly number[],
    said?: { count: number | undefined },
  ): string | undefined =>
    compare(
      expected,
      { version: 20, items, remaining: [{ seen: 1, said: said === undefined ? 2 : said.count }] },
      true,
    )
  assert.equal(faultOf([11, 12, 13]), undefined)
  for (const items of [[11, 12], [11, 13], [11, 12, 13, 14], [12, 11, 13], [11, 12, 12, 13], []]) {
    assert.match(faultOf(items) ?? '', /at version 20: 3 events expected/)
  }
  for (const count of [1, 3, undefined])
    assert.match(faultOf([11, 12, 13], { count }) ?? '', /remain/)
})
