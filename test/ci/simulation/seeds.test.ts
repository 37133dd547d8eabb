/** Runs all seeds that once failed, then fresh seeds for some seconds. A failure is never retried. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { regressions } from '../../simulation/regressions.ts'

const script = fileURLToPath(new URL('../../simulation/run.ts', import.meta.url))
// biome-ignore lint/style/noProcessEnv: the seed of this run of CI.
const given = process.env['TIDINGS_TEST_SEED']
const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given)
const freshSeconds = 10
const mirrorSeconds = 5

async function simulate(...args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const [code] = await once(child, 'close')
  assert.equal(code, 0, output)
  return output
}

for (const { seed: known, minutes, operations, world = 'events', found } of regressions) {
  test(`seed ${known} no longer fails; it found: ${found}`, async () => {
    const size = ['--minutes', String(minutes), '--world', world]
    if (operations !== undefined) size.push('--operations', String(operations))
    await simulate('--seed', String(known), '--no-shorten', ...size)
  })
}

test(`fresh seeds from ${seed} on find nothing`, async (context) => {
  const output = await simulate('--seed', String(seed), '--seconds', String(freshSeconds))
  context.diagnostic(output)
  assert.match(output, /, 0 violations$/m)
})

test(`fresh seeds of a mirrored cluster from ${seed} on find nothing`, async (context) => {
  const size = ['--minutes', '2', '--seconds', String(mirrorSeconds)]
  const output = await simulate('--world', 'mirror', '--seed', String(seed), ...size)
  context.diagnostic(output)
  assert.match(output, /, 0 violations$/m)
})
