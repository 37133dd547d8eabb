import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  budgetText,
  historyText,
  horizonOf,
  joinedWindows,
  lifetimeText,
  type RetentionWindow,
  reachesHistory,
  retentionText,
} from './retention.ts'

function windowOf(lifetimes: Readonly<Record<string, string>>, more: object = {}): RetentionWindow {
  return {
    events: 10,
    oldestMs: 5_000,
    lifetimes: Object.entries(lifetimes).map(([selects, lifetime]) => ({ selects, lifetime })),
    hiddenRules: 0,
    budget: undefined,
    evicted: 0,
    refused: 1,
    history: undefined,
    ...more,
  }
}

test('writes lifetimes in words', () => {
  assert.deepEqual(
    ['7d', '1d', '1h30m', '1m30.5s', '500ms', 'never', '2w?', ''].map(lifetimeText),
    ['7 days', '1 day', '1 hour 30 minutes', '1 minute 30.5 seconds', '500 milliseconds'].concat(
      'forever',
      '2w?',
      '',
    ),
  )
})

describe('how long events are retained', () => {
  const rules = (lifetimes: Readonly<Record<string, string>>, more?: object): string =>
    retentionText(windowOf(lifetimes, more))

  test('with one lifetime for all', () => {
    assert.equal(rules({ '': '8d' }), 'Events are kept 8 days after their last write')
    assert.equal(rules({ '': 'never' }), 'Events are kept forever')
    const history = { oldestMs: undefined, untilMs: undefined, lagMs: 0 }
    assert.equal(
      rules({ '': '8d' }, { history }),
      'Events stay in memory 8 days after their last write',
    )
  })

  test('with lifetimes by type', () => {
    assert.equal(
      rules({ Warning: '14d', '': '7d' }),
      'Events are kept 7 days after their last write (Warnings 14 days)',
    )
    assert.equal(
      rules({ Warning: '7d', Normal: '6h', '': '1h' }),
      'Normal events are kept 6 hours after their last write (Warnings 7 days)',
    )
    assert.equal(
      rules({ Normal: '6h', '': '1h' }),
      'Normal events are kept 6 hours after their last write (others 1 hour)',
    )
    assert.equal(rules({ Warning: '7d' }), 'Warnings are kept 7 days after their last write')
  })

  test('counts further rules', () => {
    assert.equal(
      rules({ 'reason=Pulled': '10m', Warning: '7d', '': '1h' }),
      'Events are kept 1 hour after their last write (Warnings 7 days); 1 further rule',
    )
    assert.equal(
      rules({ 'reason=Pulled': '10m', '': '1h' }, { hiddenRules: 3 }),
      'Events are kept 1 hour after their last write; 4 further rules',
    )
    assert.equal(rules({}), '')
  })
})

test('formats a budget of events, bytes or both', () => {
  assert.equal(
    budgetText({ events: 100_000, bytes: 209_715_200 }),
    'at most 100,000 events and 200 MiB',
  )
  assert.equal(budgetText({ bytes: 1_024 }), 'at most 1 KiB')
  assert.equal(budgetText({}), '')
})

test('knows what history has behind memory', () => {
  const plain = windowOf({})
  const history = { oldestMs: Date.parse('2025-11-16'), untilMs: 6_000, lagMs: 900_000 }
  const [deep, empty] = [windowOf({}, { history }), windowOf({}, { history, oldestMs: undefined })]
  const whole = windowOf({}, { history: { ...history, untilMs: undefined } })
  assert.deepEqual(
    [undefined, plain, whole, deep, empty].map((window) => reachesHistory(window, 5_999)),
    [false, false, false, true, true],
  )
  assert.equal(reachesHistory(deep, 6_000), false)
  assert.deepEqual(
    [horizonOf(plain), horizonOf(deep), horizonOf(empty)],
    [5_000, 5_000, history.oldestMs],
  )
  assert.equal(historyText(history), 'since 2025-11-16')
  assert.equal(historyText({ ...history, oldestMs: undefined }), 'empty so far')
  const joined = joinedWindows([
    plain,
    deep,
    windowOf({}, { history: { oldestMs: undefined, untilMs: 7_000, lagMs: 1_000_000 } }),
  ])
  assert.deepEqual(joined?.history, {
    oldestMs: history.oldestMs,
    untilMs: 7_000,
    lagMs: 1_000_000,
  })
  assert.equal(joinedWindows([plain, plain])?.history, undefined)
})

test('merges the windows of several clusters', () => {
  const one = windowOf({ '': '8d' }, { budget: { events: 5 }, evicted: 3 })
  assert.equal(joinedWindows([]), undefined)
  assert.equal(joinedWindows([one]), one)
  const same = joinedWindows([one, windowOf({ '': '8d' }, { oldestMs: 2_000, evicted: 4 })])
  assert.ok(same)
  assert.deepEqual([same.events, same.oldestMs, same.evicted, same.refused], [20, 2_000, 7, 2])
  assert.equal(same.budget, undefined)
  assert.equal(retentionText(same), 'Events are kept 8 days after their last write')
  const other = joinedWindows([
    one,
    windowOf({ '': '1d' }, { oldestMs: undefined, evicted: undefined }),
  ])
  assert.ok(other)
  assert.deepEqual([other.oldestMs, other.evicted], [5_000, undefined])
  assert.equal(retentionText(other), 'Retention differs between clusters')
})
