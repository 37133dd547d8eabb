import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NO_FILTERS, type Query, readQuery, writeQuery } from './query.ts'
import { spanOf } from './range.ts'
import { escaped, exactFilter, fieldSelector } from './selector.ts'

const plain: Query = { ...NO_FILTERS, view: 'overview', range: { last: '1h' }, about: '' }

test('round-trips a query through its URL', () => {
  const queries: readonly Query[] = [
    plain,
    { ...plain, view: 'lanes', namespace: 'shop', text: 'a&b=c#d', range: { last: '7d' } },
    { ...plain, view: 'object', about: 'Pod/shop/web-0', cluster: '*' },
    { ...plain, view: 'object', about: 'Pod/shop/web-0', history: 'all' },
    { ...plain, view: 'object' },
    { ...plain, range: { last: '90d' } },
    { ...plain, range: { fromMs: Date.parse('2024-11-20'), toMs: Date.parse('2025-11-20') } },
    { ...plain, view: 'lanes', sort: 'warnings' },
    { ...plain, view: 'sources', order: 'rate' },
    { ...plain, workload: 'Deployment/web', node: 'node-1', pattern: '9c0a41d7' },
    { ...plain, range: { fromMs: 1_000, toMs: 2_500 }, type: 'Warning' },
  ]
  for (const query of queries) assert.deepEqual(readQuery(writeQuery(query)), query)
  assert.equal(writeQuery(plain), '')
})

test('searches all of history for one object only', () => {
  assert.equal(writeQuery({ ...plain, history: 'all' }), '')
  assert.equal(writeQuery({ ...plain, view: 'object', history: 'all' }), '?view=object')
})

test('falls back to defaults for a malformed URL', () => {
  assert.deepEqual(readQuery('?view=x&range=9y&from=2&to=1&namespace='), plain)
  assert.deepEqual(readQuery('?view=object&history=x'), { ...plain, view: 'object' })
  assert.deepEqual(readQuery('?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z'), plain)
  assert.deepEqual(readQuery('?from=2026-01-02T00:00:00Z'), plain)
  assert.deepEqual(readQuery('?view=lanes&sort=x'), { ...plain, view: 'lanes' })
  assert.equal(readQuery(`?text=${'x'.repeat(5_000)}`).text.length, 256)
})

test('filters by several values and by the beginning of a value', () => {
  const selector = (reason: string): string => fieldSelector({ ...NO_FILTERS, reason })
  assert.equal(selector('BackOff|Failed*'), 'reason=BackOff|Failed*')
  assert.equal(selector('a,b=c'), 'reason=a\\,b\\=c')
  assert.equal(selector('a\\b\\*'), 'reason=a\\\\b\\*')
  const any = fc.string({ unit: fc.constantFrom(...'a|*\\,=') })
  fc.assert(
    fc.property(any, (value) => {
      if (value === '') return
      assert.equal(selector(exactFilter(value)), `reason=${escaped(value)}`)
    }),
  )
})

test('filters by workload, node and pattern', () => {
  const incident = { workload: 'Deployment/web|Job/a*', reason: 'BackOff', pattern: '9c0a41d7' }
  assert.equal(
    fieldSelector({ ...NO_FILTERS, ...incident, node: 'node-1' }),
    'workload=Deployment/web|Job/a*,node=node-1,reason=BackOff,pattern=9c0a41d7',
  )
})

test('escapes characters that would end a value', () => {
  const filters = { ...NO_FILTERS, text: 'a=b,c\\d|e*', kind: 'Pod', namespace: 'shop' }
  const span = spanOf({ fromMs: 0, toMs: 1_000 }, 5_000)
  assert.equal(
    fieldSelector(filters, span),
    'involvedObject.kind=Pod,text=a\\=b\\,c\\\\d\\|e\\*,since=1970-01-01T00:00:00.000Z,until=1970-01-01T00:00:01.000Z',
  )
  assert.deepEqual(spanOf({ last: '15m' }, 900_000), { fromMs: 0, toMs: 900_000 })
})
