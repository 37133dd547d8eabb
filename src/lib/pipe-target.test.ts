import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { describe, test } from 'node:test'

const LENGTH = 1024 * 1024

/** Writes a line that no pipe holds, and says on standard error what becomes of it. */
const PROGRAM = `
  import { PipeTarget } from ${JSON.stringify(new URL('pipe-target.ts', import.meta.url).href)}
  const target = new PipeTarget(process.stdout)
  setTimeout(() => process.stderr.write('alive '), 50)
  try {
    await target.append(Buffer.from('x'.repeat(${LENGTH - 1}) + '\\n'))
    process.stderr.write('written')
  } catch (error) {
    process.stderr.write(error.name + ' ' + error.cause.code)
  }
`

function started(): ChildProcessByStdio<null, Readable, Readable> {
  return spawn(process.execPath, ['--input-type=module', '-e', PROGRAM], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function textOf(stream: Readable): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += chunk
  return text
}

describe('pipe target', () => {
  test('a reader that is slow gets everything, and holds up nothing else meanwhile', async () => {
    const child = started()
    const [first] = await once(child.stderr, 'data')
    assert.equal(String(first), 'alive ')
    const [out, said] = await Promise.all([textOf(child.stdout), textOf(child.stderr)])
    assert.equal(out.length, LENGTH)
    assert.equal(said, 'written')
  })

  test('a reader that is gone is an error, and not the end of the process', async () => {
    const child = started()
    child.stdout.destroy()
    const [said, [code]] = await Promise.all([textOf(child.stderr), once(child, 'exit')])
    assert.match(said, /AppendError EPIPE/)
    assert.equal(code, 0)
  })
})
