/** The current program on the data of each recorded release (see docs/explanation/versions.md). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkData } from '../../releases/check-data.ts'
import { readRelease, recordedVersions } from '../../releases/recorded-release.ts'

test('there is data of a release', () => {
  assert.ok(recordedVersions().length > 0)
})

for (const version of recordedVersions()) {
  test(`the data of ${version} is read, listed, watched, changed and expires`, async () => {
    await checkData(readRelease(version))
  })
}
