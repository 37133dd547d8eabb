import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { Registry } from '@prometheus-io/client'
import { registerBuildMetrics } from './process.ts'

test('tidings_build_info has the version, commit and Node release of the build', async () => {
  const manifest = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  const { version } = JSON.parse(manifest)
  const registry = new Registry()
  registerBuildMetrics(registry)
  const lines = (await registry.metrics()).split('\n').filter((line) => /^[^#]/.test(line))
  // Only a build has a commit.
  assert.deepEqual(lines, [
    `tidings_build_info{version="${version}",commit="",node="${process.version}"} 1`,
  ])
})
