import { defaultMemoryBounds } from '../../src/cache/memory/memory.ts'
import { defaultHistoryBounds } from '../../src/cache/watch/history.ts'
import { serverCommand } from '../../src/options/commands.ts'
import type { Options } from '../../src/options/options.ts'
import { parseFlags } from '../../src/options/parse.ts'
import type { Setting } from './setting.ts'

/** Few changes are read at once, so that most watchers take turns. */
const PROMPT_PART = 1 / 16

/** Small bounds, so that watchers fall off the ring and old states are evicted. */
export function setBounds({ limits, statesMax }: Setting): void {
  const { historyChangesMax: changesMax } = limits
  const promptMax = Math.ceil(changesMax * PROMPT_PART)
  Object.assign(defaultHistoryBounds, { changesMax, promptMax })
  Object.assign(defaultMemoryBounds, { statesMax })
}

export function optionsOf({ members, limits, quotaBytes, history }: Setting): Options {
  const servers = Array.from({ length: members }, (_, index) => `http://etcd-${index}:2379`)
  const parsed = parseFlags(serverCommand, [`--etcd-servers=${servers.join(',')}`])
  if (parsed.kind !== 'run') throw new Error(`the options are wrong: ${JSON.stringify(parsed)}`)
  return {
    ...parsed.options,
    eventTtlMs: limits.eventTtlMs,
    etcdCompactionIntervalMs: limits.compactionIntervalMs,
    etcdQuotaBytes: quotaBytes,
    ...(history && {
      history: 'file:///archive',
      historySegmentIntervalMs: history.segmentMs,
      historySegmentBytes: history.segmentBytes,
    }),
  }
}
