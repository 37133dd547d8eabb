import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { test } from 'node:test'
import { shortSize } from '../../nightly/chaos/scenarios/scenarios.ts'
import { testSeed } from '../../support/seed.ts'

const { operations, faults, watchers } = shortSize
const size = ['--operations', operations, '--faults', faults, '--watchers', watchers].map(String)
const seed = ['--seed', String(testSeed())]

// With little memory, so that lists and watches also read from etcd.
for (const storage of ['etcd', 'cached-small']) {
  test(`chaos: no promise of ${storage} is broken while etcd is killed, paused and cut off`, async (t) => {
    t.diagnostic((await run([...size, ...seed, '--storage', storage])).split('\n').at(0) ?? '')
  })
}

/** Returns the output; fails with it when the run fails. */
async function run(args: readonly string[]): Promise<string> {
  const child = spawn(
    execPath,
    [join(import.meta.dirname, '../../nightly/chaos/run.ts'), ...args],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  }
  const [code] = await once(child, 'close')
  const printed = Buffer.concat(chunks).toString()
  assert.equal(code, 0, printed)
  return printed
}
