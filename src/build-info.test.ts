import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { showBuild } from './build-info.ts'

test('a metric tells version, commit and Node of the build', async () => {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(manifest)
  const registry = new Registry()
  showBuild(registry)
  const lines = (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
  // The commit is known to builds only.
  assert.deepEqual(lines, [
    `tidings_build_info{version="${version}",commit="",node="${process.version}"} 1`,
  ])
})
