import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { etcdBinary } from './etcd.ts'

const program = join(import.meta.dirname, '../../dist/main.js')

/** A running `tidings dev`. */
export interface DevServer {
  readonly child: ChildProcess
  /** Where its data is. */
  readonly folder: string
  /** What it has printed for the user. */
  readonly lines: readonly string[]
  stderr(): string
}

/** Starts `tidings dev` and waits for its banner. */
export async function startDev(
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<DevServer> {
  const child = spawn(process.execPath, [program, 'dev', `--etcd-binary=${etcdBinary}`, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    // biome-ignore lint/style/noProcessEnv: the program gets what a user's shell would give it.
    env: { ...process.env, ...env },
  })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    stderr += chunk
  })
  for (let wait = 0; wait < 1_200 && !stdout.includes('Ctrl-C'); wait++) await sleep(50)
  const folder = /All data is in (\S+)/.exec(stdout)?.[1]
  if (folder === undefined) child.kill('SIGKILL')
  assert.ok(folder, `${stdout}${stderr}`)
  return { child, folder, lines: stdout.split('\n'), stderr: () => stderr }
}
