import { defaultMemoryBounds } from '../../src/cache/memory/memory.ts'
import { defaultHistoryBounds } from '../../src/cache/watch/history.ts'
import { serverCommand } from '../../src/options/commands.ts'
import type { Options } from '../../src/options/options.ts'
import { parseFlags } from '../../src/options/parse.ts'
import type { Setting } from './setting.ts'

/** Small bounds, so that watchers fall off the ring and old states are evicted. */
export function setBounds({ limits, statesMax }: Setting): void {
  Object.assign(defaultHistoryBounds, { changesMax: limits.historyChangesMax })
  Object.assign(defaultMemoryBounds, { statesMax })
}

export function optionsOf({ members, limits, quotaBytes }: Setting): Options {
  const servers = Array.from({ length: members }, (_, index) => `http://etcd-${index}:2379`)
  const parsed = parseFlags(serverCommand, [`--etcd-servers=${servers.join(',')}`])
  if (parsed.kind !== 'run') throw new Error(`the options are wrong: ${JSON.stringify(parsed)}`)
  return {
    ...parsed.options,
    eventTtlMs: limits.eventTtlMs,
    etcdCompactionIntervalMs: limits.compactionIntervalMs,
    etcdQuotaBytes: quotaBytes,
  }
}
