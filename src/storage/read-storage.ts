import type { WatchedStorage } from './storage.ts'

/** The reading part of a storage, which objects that are derived from events have as well. */
export type ReadStorage = Pick<
  WatchedStorage,
  'get' | 'list' | 'listRuns' | 'watch' | 'currentVersion'
>
