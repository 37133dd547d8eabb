import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mirrorText } from './mirror.ts'

function textOf(state: string, lagMs?: number): string {
  const { icon, title, detail } = mirrorText({ state, lagMs })
  return `${icon}: ${title} ${detail}`
}

test('names the state, its icon and the lag', () => {
  assert.equal(textOf('Following', 1_000), 'good: Following 1s behind')
  assert.equal(textOf('Following', 0), 'good: Following up to date')
  assert.equal(textOf('Stalled', 420_000), 'bad: Stalled 7m behind')
  assert.equal(textOf('Syncing'), 'busy: Syncing copying what the cluster has')
  assert.equal(textOf('Waiting'), 'waiting: Waiting no replica has reported yet')
  assert.equal(textOf('Novel'), 'waiting: Novel ')
})

test('says so for a cluster without a mirror', () => {
  assert.deepEqual(mirrorText(undefined), {
    icon: undefined,
    title: 'Not mirrored:',
    detail: 'its events are written here',
  })
})
