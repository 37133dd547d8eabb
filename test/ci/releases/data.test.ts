/** The current program on the data of each recorded release (see docs/explanation/versions.md). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkData, refusedKeys } from '../../releases/check-data.ts'
import { readRelease, recordedVersions } from '../../releases/recorded-release.ts'

test('there is data of a release', () => {
  assert.ok(recordedVersions().length > 0)
})

test('a version may add control keys that name the replica, and no other keys', () => {
  const value = '{"replica":"vm/7","version":2}'
  const added = [
    { key: '/tidings/control/audit-state', value, revision: 2 },
    { key: '/tidings/control/shards/eu-1.example.org', value, revision: 3 },
    { key: '/tidings/control/state', value: '{"version":2}', revision: 4 },
    { key: '/tidings/control/pods/default/web-0', value, revision: 5 },
    { key: '/tidings/summaries', value, revision: 6 },
  ]
  assert.deepEqual(refusedKeys(added), [
    '/tidings/control/state',
    '/tidings/control/pods/default/web-0',
    '/tidings/summaries',
  ])
})

for (const version of recordedVersions()) {
  test(`the data of ${version} is read, listed, watched, changed and expires`, async () => {
    await checkData(readRelease(version))
  })
}
