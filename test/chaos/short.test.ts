import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { execPath } from 'node:process'
import { test } from 'node:test'
import { shortSize } from './scenarios/scenarios.ts'

const { operations, faults, watchers } = shortSize
const size = ['--operations', operations, '--faults', faults, '--watchers', watchers].map(String)

// With little memory, so that lists and watches also go past it.
for (const storage of ['etcd', 'cached-small']) {
  test(`chaos: no promise of ${storage} is broken while etcd is killed, paused and cut off`, async (t) => {
    t.diagnostic((await run([...size, '--storage', storage])).split('\n').at(0) ?? '')
  })
}

test('chaos: storages that break a promise are found out', async () => {
  await run(['--scenario', 'planted'])
})

/** What it printed; fails with it when the run did. */
async function run(args: readonly string[]): Promise<string> {
  const child = spawn(execPath, [join(import.meta.dirname, 'run.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  }
  const [code] = await once(child, 'close')
  const printed = Buffer.concat(chunks).toString()
  assert.equal(code, 0, printed)
  return printed
}
