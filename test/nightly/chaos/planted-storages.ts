/**
 * Storages that break one promise each, to prove that a run would detect it. The bugs are known
 * from real systems: a read from a cache without a freshness check, a write repeated after a lost
 * response, an unknown result reported as a rejection, a watch that skips changes.
 */
import { StorageError } from '../../../src/storage/errors.ts'
import type {
  EventKey,
  EventStorage,
  EventWatch,
  StoredEvent,
} from '../../../src/storage/storage.ts'
import { pathOf } from '../../worlds/workload/key-space.ts'

/** The methods that have the bug. */
export const planted: Readonly<Record<string, (storage: EventStorage) => Partial<EventStorage>>> = {
  'stale-reads': (storage) => {
    const remembered = new Map<string, { readonly stored: StoredEvent; readonly at: number }>()
    const freshMs = 1_000
    return {
      get: async (key, options) => {
        const known = remembered.get(pathOf(key))
        if (known !== undefined && performance.now() - known.at < freshMs) return known.stored
        const stored = await storage.get(key, options)
        remembered.set(pathOf(key), { stored, at: performance.now() })
        return stored
      },
    }
  },

  'writes-again': (storage) => {
    const again = async <Answer>(write: () => Promise<Answer>): Promise<Answer> => {
      try {
        return await write()
      } catch (error) {
        if (error instanceof StorageError && error.kind === 'timeout') return await write()
        throw error
      }
    }
    return {
      create: (key, body) => again(() => storage.create(key, body)),
      update: (key, change) => again(() => storage.update(key, change)),
    }
  },

  'unknown-is-refused': (storage) => {
    const misreported = async (write: () => Promise<StoredEvent>): Promise<StoredEvent> => {
      try {
        return await write()
      } catch (error) {
        if (!(error instanceof StorageError) || error.kind !== 'timeout') throw error
        throw new StorageError({
          kind: 'unavailable',
          message: 'an unknown result, reported as not applied',
        })
      }
    }
    return {
      create: (key: EventKey, body) => misreported(() => storage.create(key, body)),
      update: (key, change) => misreported(() => storage.update(key, change)),
      delete: (key, guard) => misreported(() => storage.delete(key, guard)),
    }
  },

  'watch-skips': (storage) => ({
    watch: (scope, options): EventWatch => {
      const watch = storage.watch(scope, options)
      async function* skipping() {
        for await (const batch of watch) {
          // Often enough for the two hundred changes of a short run.
          const items = batch.items.filter(({ stored }) => stored.version % 7 !== 0)
          yield { ...batch, items }
        }
      }
      return {
        requestProgress: () => watch.requestProgress(),
        [Symbol.asyncIterator]: skipping,
      }
    },
  }),
}
