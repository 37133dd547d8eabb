import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { unreleasedEntries, withRelease } from './changelog.ts'
import { root } from './project.ts'
import { parseVersion, versionsAfter } from './semver.ts'

test('changelog: the sections below stay as they are', () => {
  const old = '# Changelog\n\n## Unreleased\n\n- B.\n\n## 0.1.0 (2026-01-01)\n\n- A.\n'
  const next = withRelease(old, '0.2.0', '2026-02-02')
  assert.equal(
    next,
    '# Changelog\n\n## Unreleased\n\nNothing yet.\n\n## 0.2.0 (2026-02-02)\n\n- B.\n\n## 0.1.0 (2026-01-01)\n\n- A.\n',
  )
  assert.throws(() => withRelease(next, '0.3.0', '2026-03-03'), /no entries/)
  assert.throws(() => withRelease(old, '0.1.0', '2026-03-03'), /a section of 0\.1\.0 already/)
})

test('changelog: that of this repository can be released', () => {
  const text = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  assert.match(text, /^# Changelog\n\n## Unreleased\n/)
  assert.doesNotThrow(() => unreleasedEntries(text))
})

test('versions: a pre-release is followed by its release', () => {
  const after = (text: string) => versionsAfter(parseVersion(text) ?? assert.fail(text))
  assert.deepEqual(after('1.2.3'), ['1.2.4', '1.3.0', '2.0.0'])
  assert.deepEqual(after('1.2.0-rc.1'), ['1.2.0', '1.2.1', '1.3.0', '2.0.0'])
  for (const text of ['1.2', 'v1.2.3', '01.2.3', '1.2.3-', '1.2.3+x', '']) {
    assert.equal(parseVersion(text), undefined, text)
  }
})
