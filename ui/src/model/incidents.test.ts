import assert from 'node:assert/strict'
import { test } from 'node:test'
import { incidentFilters } from './incidents.ts'

test('selects an incident by its place, workload, reason and pattern', () => {
  const incident = { workload: 'Deployment/web', reason: 'A|B', pattern: '9c0a41d7' }
  assert.deepEqual(incidentFilters(incident), { ...incident, reason: 'A\\|B' })
  const place = { cluster: 'eu', namespace: 'shop' }
  assert.deepEqual(incidentFilters({ ...place, ...incident }), {
    ...place,
    ...incident,
    reason: 'A\\|B',
  })
})

test('leaves out what no filter can select', () => {
  const pattern = '9c0a41d7'
  for (const workload of ['/', 'Pod/', '/web', 'Node/a/b', `Pod/${'x'.repeat(200)}… aGVsbG8`]) {
    assert.deepEqual(incidentFilters({ workload, reason: '', pattern }), { pattern }, workload)
  }
})
