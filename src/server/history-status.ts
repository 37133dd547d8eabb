import type { History } from '../history/history.ts'
import type { HistoryStatus } from './metrics/history.ts'

/** Input of the metrics. */
export function historyStatus(history: History, cacheLimitBytes: number): HistoryStatus {
  const { archiver, catalogue, state, upkeep, files } = history
  const { status } = archiver
  const { pointer, totals } = catalogue
  const now = Date.now()
  const since = (ms: number | undefined) => (ms === undefined ? undefined : Math.max(0, now - ms))
  const { hits, misses, bytes } = files.cache.counters
  const failed = (step: 'encode' | 'upload' | 'publish') => status.failures.get(step) ?? 0
  return {
    isWriter: status.isWriter,
    positionLagMs: since(pointer?.positionAtMs),
    archivedEvents: status.archived,
    lostEvents: {
      evicted: state.lost.get('evicted') ?? 0,
      'no-space': state.lost.get('no-space') ?? 0,
      gap: status.gaps,
      unreadable: status.rejected,
    },
    segments: status.segments,
    segmentBytes: status.bytes,
    writeFailures: {
      encode: failed('encode'),
      upload: failed('upload'),
      publish: failed('publish'),
      upkeep: upkeep.status.failures,
    },
    files: pointer && totals.files,
    storedBytes: pointer && totals.bytes,
    oldestMs: since(totals.oldestMs),
    readerRestarts: files.engines.find(([name]) => name === 'query')?.[1].deaths ?? 0,
    cacheBytes: bytes,
    cacheLimitBytes,
    cacheRequests: { hit: hits, miss: misses },
  }
}
