import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_FILTERS } from '../model/query.ts'
import { listPages } from './events.ts'

test('limits pages of large events by bytes before it limits them by number', async () => {
  const large = { message: 'x'.repeat(100_000) }
  let asked = 0
  const client = {
    get: async <Result>(): Promise<Result> => {
      asked++
      const items = Array.from({ length: 100 }, (_, n) => ({
        ...large,
        metadata: { name: `${n}` },
      }))
      return { metadata: { continue: 'more' }, items } as Result
    },
  }
  const { signal } = new AbortController()
  const options = { filters: NO_FILTERS, order: 'newest', rowsMax: 5_000, signal } as const
  const { rows, hasMore } = await listPages(client, options)
  assert.deepEqual([asked, rows.length, hasMore], [2, 200, true])
})
