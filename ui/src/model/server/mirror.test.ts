import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mirrorText } from './mirror.ts'

function told(state: string, lagMs?: number): string {
  const { icon, title, detail } = mirrorText({ state, lagMs })
  return `${icon}: ${title} ${detail}`
}

test('each state has an icon, a title and how far behind it is', () => {
  assert.equal(told('Following', 1_000), 'good: Following 1s behind')
  assert.equal(told('Stalled', 420_000), 'bad: Stalled 7m behind')
  assert.equal(told('Syncing'), 'busy: Syncing copying what the cluster has')
  assert.equal(told('Waiting'), 'waiting: Waiting no replica has begun to mirror it')
  assert.equal(told('Novel'), 'waiting: Novel ')
})

test('a cluster without a mirror says so', () => {
  assert.deepEqual(mirrorText(undefined), {
    icon: undefined,
    title: 'Not mirrored:',
    detail: 'its events are written here',
  })
})
