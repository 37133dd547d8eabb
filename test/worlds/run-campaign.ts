import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { execPath } from 'node:process'

const tests = join(import.meta.dirname, '..')

/** Runs a program below test/ in a process of its own. Returns its output; fails with it. */
export async function runCampaign(program: string, ...args: readonly string[]): Promise<string> {
  const stdio = ['ignore', 'pipe', 'pipe'] as const
  const child = spawn(execPath, [join(tests, program), ...args], { stdio: [...stdio] })
  const chunks: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => chunks.push(chunk))
  }
  const [code] = await once(child, 'close')
  const printed = Buffer.concat(chunks).toString()
  assert.equal(code, 0, printed)
  return printed
}
