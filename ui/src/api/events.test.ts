import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NO_FILTERS } from '../model/query.ts'
import type { ApiClient, Ask } from './client.ts'
import { type EventPage, listPages } from './events.ts'

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
  const { rows, next } = await listPages(client, options)
  assert.deepEqual([asked, rows.length, next], [2, 200, 'more'])
})

/** Pages of history: some are empty, since time ran out. */
const ANSWERS: readonly {
  readonly names: readonly string[]
  readonly next: string
  readonly searched?: string
}[] = [
  { names: ['a', 'b'], next: '1' },
  { names: [], next: '2', searched: '2026-11-10T00:00:00.000Z' },
  { names: ['c'], next: '3', searched: '2026-11-05T00:00:00.000Z' },
  { names: ['d'], next: '' },
]

function historyClient(): { readonly get: ApiClient['get']; readonly asked: string[][] } {
  const asked: string[][] = []
  const get = async <Result>(_path: string, { parameters = {}, onWarning }: Ask = {}) => {
    const { continue: after = '0', limit = '' } = parameters
    asked.push([after, limit])
    const { names, next, searched } = ANSWERS[Number(after)] ?? { names: [], next: '' }
    onWarning?.('the mirror of eu is 3h behind')
    if (searched !== undefined) {
      onWarning?.(`history was searched only up to ${searched} in the time that a request has`)
    }
    const lastTimestamp = '2026-11-15T00:00:00Z'
    const items = names.map((name) => ({ metadata: { name }, lastTimestamp }))
    return { metadata: { continue: next }, items } as Result
  }
  return { get, asked }
}

test('searches history on until there are enough rows, and says how far it has come', async () => {
  const client = historyClient()
  const { signal } = new AbortController()
  const reached: (string | undefined)[] = []
  const onPage = ({ reachedMs }: EventPage): unknown =>
    reached.push(reachedMs === undefined ? undefined : new Date(reachedMs).toISOString())
  const options = { filters: NO_FILTERS, order: 'newest', rowsMax: 3, signal, onPage } as const
  const pages = await listPages(client, options)
  assert.deepEqual(client.asked, [
    ['0', '3'],
    ['1', '1'],
    ['2', '1'],
  ])
  assert.deepEqual(reached, ['2026-11-15T00:00:00.000Z', '2026-11-10T00:00:00.000Z'])
  assert.deepEqual(
    [pages.rows.map(({ name }) => name), pages.next, pages.reachedMs],
    [['a', 'b', 'c'], '3', Date.parse('2026-11-05')],
  )
  assert.deepEqual(pages.basis.warnings, ['the mirror of eu is 3h behind'])
  const whole = await listPages(client, { ...options, rowsMax: 10, before: pages })
  assert.deepEqual(
    [whole.rows.map(({ name }) => name), whole.next, whole.reachedMs],
    [['a', 'b', 'c', 'd'], '', undefined],
  )
  assert.equal(client.asked.length, 4)
  assert.equal(await listPages(client, { ...options, before: whole }), whole)
  assert.equal(client.asked.length, 4)
})
