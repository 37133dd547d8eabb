import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { test } from 'node:test'
import { testSeed } from '../../support/seed.ts'

const seed = ['--seed', String(testSeed())]

test('a mirror has every event once, in order and up to date, through 4,000 writes and 20 faults', async (t) => {
  const printed = await run(['--writes', '4000', '--faults', '20', ...seed, '--quiet'])
  t.diagnostic(printed)
})

test('a mirror that does not compare versions is found', async () => {
  await run(['--planted', 'no-version-compare', ...seed])
})

/** Returns the output; fails with it when the run fails. */
async function run(args: readonly string[]): Promise<string> {
  const program = join(import.meta.dirname, '../../nightly/mirror-chaos/run.ts')
  const child = spawn(execPath, [program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  }
  const [code] = await once(child, 'close')
  const printed = Buffer.concat(chunks).toString()
  assert.equal(code, 0, printed)
  return printed
}
