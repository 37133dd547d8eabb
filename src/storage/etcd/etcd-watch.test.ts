import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Watch, WatchBatch } from '../../etcd/client.ts'
import { parseVersion } from '../resource-version.ts'
import { EtcdWatch, toWatchItem } from './etcd-watch.ts'
import { EventKeys } from './keys.ts'

/** What a member sends to a watch. */
function watchOf(...batches: readonly WatchBatch[]): Watch {
  return {
    connection: 1,
    requestProgress: () => {},
    [Symbol.asyncIterator]: async function* () {
      yield* batches
    },
  }
}

test('a member that lags behind the start of a watch reports no progress', async () => {
  const from = parseVersion('5000')
  const watch = new EtcdWatch({
    watch: watchOf({ revision: 4, events: [] }, { revision: 5, events: [] }),
    keys: new EventKeys('/tidings'),
    scope: { cluster: 'local', namespace: undefined },
    from,
    toItem: toWatchItem,
    onCorrupt: () => {},
  })
  const versions: unknown[] = []
  for await (const { version } of watch) versions.push(version)
  assert.deepEqual(versions, [5999])
})
