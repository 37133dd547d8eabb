/**
 * The newest kubectl, unmodified; `npm run tools -- kubectl` downloads it. `npm test -- kubectl` also runs
 * older releases, as far as they are on the machine, and all of them through the path of a cluster.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { RECORDED_WITH } from '../../nightly/kubectl/kubectl.ts'
import { differences, kubectlSuite } from '../../nightly/kubectl/suite.ts'

kubectlSuite(RECORDED_WITH)

test('every difference has its row in docs/reference/compatibility.md', () => {
  const page = readFileSync(
    join(import.meta.dirname, '../../../docs/reference/compatibility.md'),
    'utf8',
  )
  assert.notEqual(differences.length, 0)
  for (const { command, remark } of differences) {
    for (const id of remark.split(', ')) {
      assert.match(page, new RegExp(`^\\| \`${id}\` `, 'm'), command)
    }
  }
})
