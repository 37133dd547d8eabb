import assert from 'node:assert/strict'
import { test } from 'node:test'
import { beginning, versionOfState } from '../../storage/resource-version.ts'
import { CatchUpReader, type CatchUpReaderOptions, stepsMax } from './catch-up-reader.ts'

test(`a catch-up reader reads at most ${stepsMax} steps at a time, also when one begins as another ends`, async () => {
  let open = 0
  let most = 0
  const ends: (() => void)[] = []
  const store = {
    watch: () => {
      most = Math.max(most, ++open)
      const ended = new Promise<void>((resolve) => ends.push(resolve))
      return {
        connection: 1,
        requestProgress: () => {},
        async *[Symbol.asyncIterator]() {
          await ended
          open--
          yield { items: [], version: versionOfState(2) }
        },
      }
    },
  } as unknown as CatchUpReaderOptions['store']
  const reader = new CatchUpReader({ store, isSameHistory: async () => true })
  const step = {
    scope: { cluster: undefined, namespace: undefined },
    from: beginning,
    until: versionOfState(1),
    signal: new AbortController().signal,
  }
  const reads: Promise<unknown>[] = []
  const read = (): void => {
    // A watcher starts its next step as soon as it has the one before.
    reads.push(reader.read(step).then(() => void (reads.length < 100 && read())))
  }
  for (let index = 0; index < stepsMax + 4; index++) read()
  while (ends.length > 0 || open > 0) {
    ends.shift()?.()
    for (let tick = 0; tick < 20; tick++) await undefined
  }
  await Promise.all(reads)
  assert.equal(reader.steps, 100)
  assert.equal(most, stepsMax)
})
