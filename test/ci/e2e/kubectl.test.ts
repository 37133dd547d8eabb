/**
 * The newest kubectl and the oldest that must work, unmodified; the oldest through the path of a
 * cluster. `npm run test:kubectl` also runs the releases in between. A release that is not on the
 * machine is skipped: `npm run kubectl` downloads the newest.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { OLDEST, RECORDED_WITH } from '../../nightly/kubectl/kubectl.ts'
import { differences, kubectlSuite } from '../../nightly/kubectl/suite.ts'

kubectlSuite(RECORDED_WITH)
kubectlSuite(OLDEST, '/clusters/prod-eu')

test('every difference has its row in docs/reference/compatibility.md', () => {
  const page = readFileSync(
    join(import.meta.dirname, '../../../docs/reference/compatibility.md'),
    'utf8',
  )
  assert.notEqual(differences.length, 0)
  for (const { command, remark } of differences) {
    assert.match(page, new RegExp(`^\\| \`${remark}\` `, 'm'), command)
  }
})
