import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { registerMirrorMetrics } from './mirrors.ts'

test('owners are shown by cluster and resource, as long as this replica reads them', async () => {
  const registry = new Registry()
  const following = new Map([['prod', new Map([['pods', true]]).set('jobs', false)]])
  registerMirrorMetrics(
    {
      statuses: () => [],
      counters: () => [],
      led: () => new Set(),
      ownersFollowing: () => following,
    },
    registry,
  )
  const shown = async () =>
    (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
  const pods = 'tidings_mirror_owners_following{cluster="prod",resource="pods"} 1'
  const jobs = 'tidings_mirror_owners_following{cluster="prod",resource="jobs"} 0'
  assert.deepEqual(await shown(), [pods, jobs])
  following.set('prod', new Map())
  assert.deepEqual(await shown(), [])
})
