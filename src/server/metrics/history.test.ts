import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { type HistoryStatus, historyQueryObserver, registerHistoryMetrics } from './history.ts'

const started: HistoryStatus = {
  isWriter: false,
  positionLagMs: undefined,
  archivedEvents: 0,
  lostEvents: { evicted: 0, 'no-space': 0, gap: 0, unreadable: 0 },
  segments: 0,
  segmentBytes: 0,
  writeFailures: { encode: 0, upload: 0, publish: 0, upkeep: 0 },
  files: undefined,
  storedBytes: undefined,
  oldestMs: undefined,
  readerRestarts: 0,
  cacheBytes: 0,
  cacheLimitBytes: 1024,
  cacheRequests: { hit: 0, miss: 0 },
}

test('history: what can fail has series from the start, and what is not known has none', async () => {
  const registry = new Registry()
  let status = started
  registerHistoryMetrics(() => status, registry)
  historyQueryObserver(registry)
  const text = await registry.metrics()
  for (const line of [
    'tidings_history_writer_role 0',
    'tidings_history_lost_events_total{reason="gap"} 0',
    'tidings_history_write_failures_total{step="upkeep"} 0',
    'tidings_history_cache_requests_total{result="miss"} 0',
    'tidings_history_queries_total{result="timeout"} 0',
  ]) {
    assert.ok(text.includes(`\n${line}\n`), line)
  }
  assert.doesNotMatch(text, /^tidings_history_(position_lag_seconds|files|oldest_seconds) /m)

  status = { ...started, isWriter: true, positionLagMs: 1500, files: 3, archivedEvents: 7 }
  const later = await registry.metrics()
  for (const line of [
    'tidings_history_writer_role 1',
    'tidings_history_position_lag_seconds 1.5',
    'tidings_history_files 3',
    'tidings_history_archived_events_total 7',
  ]) {
    assert.ok(later.includes(`\n${line}\n`), line)
  }
})

test('history: queries are counted and timed by result', async () => {
  const registry = new Registry()
  const observe = historyQueryObserver(registry)
  observe(20, 'served')
  observe(10_000, 'timeout')
  const text = await registry.metrics()
  assert.match(text, /^tidings_history_queries_total\{result="served"\} 1$/m)
  assert.match(text, /^tidings_history_query_duration_seconds_sum\{result="timeout"\} 10$/m)
  assert.match(text, /_seconds_bucket\{le="0.025",result="served"\} 1$/m)
})
