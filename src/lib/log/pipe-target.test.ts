import assert from 'node:assert/strict'
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable } from 'node:stream'
import { describe, test } from 'node:test'

const LENGTH = 1024 * 1024

/** Writes a line that is longer than any pipe buffer, and reports the result on standard error. */
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
  test('writes everything to a slow reader without blocking the event loop', async () => {
    const child = started()
    const [first] = await once(child.stderr, 'data')
    assert.equal(String(first), 'alive ')
    const [out, report] = await Promise.all([textOf(child.stdout), textOf(child.stderr)])
    assert.equal(out.length, LENGTH)
    assert.equal(report, 'written')
  })

  test('rejects with an AppendError when the reader is closed, without ending the process', async () => {
    const child = started()
    child.stdout.destroy()
    const [report, [code]] = await Promise.all([textOf(child.stderr), once(child, 'exit')])
    assert.match(report, /AppendError EPIPE/)
    assert.equal(code, 0)
  })
})
