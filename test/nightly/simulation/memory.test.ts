/** A process runs thousands of worlds: they must not add up in memory. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

test('worlds that have ended are not kept, apart from the last one', () => {
  const folder = new URL('../../simulation/', import.meta.url)
  const script = `
    import { intercept } from '${new URL('kernel/interception.ts', folder)}'
    import { inTask } from '${new URL('kernel/current.ts', folder)}'
    import { queryObjects } from 'node:v8'
    intercept()
    const { runScenario, scenarioOf } = await import('${new URL('simulate.ts', folder)}')
    const { World } = await import('${new URL('world.ts', folder)}')
    for (let seed = 1; seed <= 3; seed++) {
      await inTask(() => runScenario(scenarioOf({ seed, durationMs: 40_000 })))
    }
    process.stdout.write(String(queryObjects(World, { format: 'count' })))`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  assert.ok(Number(stdout) <= 1 && stdout !== '', `${stdout} of 3 worlds are kept: ${stderr}`)
})
