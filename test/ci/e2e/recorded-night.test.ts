/**
 * A night of which everything is known is written in different ways. The server must answer in
 * incidents, and count what happened when it happened. `npm test -- night` does the same with 20,000
 * events of routine, with the recorders of client-go and with a Kubernetes.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isFull } from '../../support/load.ts'
import { kubeconfig } from '../../support/mirrors.ts'
import { MIRRORED, NightSite, whyNotNight } from '../../support/night-site.ts'
import {
  mergePatches,
  newRecorder,
  nightWrites,
  oldRecorder,
  play,
  type Way,
} from '../../support/night-writes.ts'
import { recordedNight } from '../../support/recorded-night.ts'
import { ADMIN_TOKEN, Replicas } from '../../support/replicas.ts'
import { testSeed } from '../../support/seed.ts'

const NOISE = isFull ? 20_000 : 2_000
/** The part of all occurrences that an even distribution puts into another bucket, at most. */
const MISPLACED_SHARE_MAX = 0.02

const WAYS: Readonly<Record<string, Way>> = {
  'merge-patches': mergePatches,
  'old-recorder': oldRecorder,
  'new-recorder': newRecorder,
}

describe(`a night with ${NOISE} events of routine`, { skip: whyNotNight }, () => {
  const seed = testSeed()
  const night = recordedNight({ seed, noise: NOISE, nowMs: Date.now() })
  let site: NightSite
  let origin: Replicas

  before(async () => {
    origin = await Replicas.start(1)
    const { port, ca } = origin.server(0)
    site = await NightSite.start(kubeconfig(`https://127.0.0.1:${port}`, ca, ADMIN_TOKEN))
    const clients = await site.clients()
    using client = await origin.client(0)
    await Promise.all([
      ...Object.entries(WAYS).map(([cluster, way]) =>
        play(nightWrites(night, way, `/clusters/${cluster}`), clients),
      ),
      play(nightWrites(night, mergePatches), [client]),
    ])
    await site.untilCopied(night.events)
  })
  after(async () => {
    await site[Symbol.asyncDispose]()
    await origin[Symbol.asyncDispose]()
  })

  for (const cluster of ['merge-patches', 'old-recorder', MIRRORED]) {
    test(`is counted exactly as it was: ${cluster}`, async (t) => {
      t.diagnostic(`seed ${seed}`)
      for (const { estimated, misplaced } of await site.check(t, night, cluster)) {
        assert.deepEqual([estimated, misplaced], [0, 0])
      }
    })
  }

  // Its writes tell of half an hour at a time.
  test('is counted as a whole, and exactly where it is not marked: new-recorder', async (t) => {
    t.diagnostic(`seed ${seed}`)
    for (const { estimated, misplaced, total } of await site.check(t, night, 'new-recorder')) {
      assert.ok(estimated > 0, 'nothing is an estimate')
      assert.ok(misplaced / total < MISPLACED_SHARE_MAX, `${misplaced} of ${total}`)
    }
  })
})
