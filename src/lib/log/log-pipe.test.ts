/** Runs the writer in a child process, on a real pipe that is read, not read, or closed. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'

const program = `
  import { createLog } from ${JSON.stringify(new URL('./log.ts', import.meta.url).href)}
  import { LogWriter } from ${JSON.stringify(new URL('./log-writer.ts', import.meta.url).href)}
  const writer = new LogWriter({ flushIntervalMs: 20, bufferedBytesMax: 64 * 1024 })
  const log = createLog({ format: 'text', verbosity: 0, sink: writer, pid: process.pid })
  writer.onDropped((lines) => log.warn('Lines were dropped', { lines }))
  const state = () => process.send({ at: writer.lastFlushedAt(), dropped: writer.dropped })
  const fill = () => { for (let i = 0; i < 2000; i++) log.info('Fill', { i, text: 'x'.repeat(200) }) }
  const steps = {
    state,
    line: () => { log.info('Line'); setTimeout(state, 50) },
    fill: () => { fill(); setTimeout(state, 50) },
    close: async () => { await writer.close(100); process.exit(0) },
    crash: () => { fill(); log.error('Fatal'); writer.flushSync(100); process.exit(3) },
    disconnect: () => { process.disconnect() },
  }
  process.on('message', (step) => steps[step]())
  process.send('ready')
`

interface State {
  readonly at: number
  readonly dropped: number
}

class Piped {
  readonly child: ChildProcess
  readonly #reader: number
  #open = true

  constructor(child: ChildProcess, reader: number) {
    this.child = child
    this.#reader = reader
  }

  async run(step: string): Promise<State> {
    this.child.send(step)
    const [state] = await once(this.child, 'message')
    return state
  }

  /** Runs a step that ends the process and returns the exit code. */
  async end(step: string): Promise<number | null> {
    this.child.send(step)
    const [code] = await once(this.child, 'exit')
    return code
  }

  /** Everything that is in the pipe now. */
  read(): string {
    const chunk = Buffer.alloc(64 * 1024)
    let text = ''
    try {
      for (let n = -1; n !== 0; text += chunk.toString('latin1', 0, n))
        n = readSync(this.#reader, chunk)
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'EAGAIN')
    }
    return text
  }

  closeReader(): void {
    if (this.#open) closeSync(this.#reader)
    this.#open = false
  }
}

async function start(t: TestContext): Promise<Piped> {
  const dir = mkdtempSync(join(tmpdir(), 'tidings-log-'))
  const path = join(dir, 'stderr')
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const stderr = openSync(path, constants.O_WRONLY)
  const args = ['--input-type=module', '--eval', program]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'inherit', stderr, 'ipc'] })
  closeSync(stderr)
  const piped = new Piped(child, reader)
  t.after(() => {
    child.kill('SIGKILL')
    piped.closeReader()
    rmSync(dir, { recursive: true })
  })
  await once(child, 'message')
  return piped
}

describe('the log of a process whose standard error is a pipe', { timeout: 30_000 }, () => {
  test('stops lastFlushedAt while the pipe is full', async (t) => {
    const piped = await start(t)
    const first = await piped.run('line')
    const second = await piped.run('line')
    assert.ok(second.at > first.at)
    assert.match(piped.read(), /^I.* main\] "Line"\nI.* main\] "Line"\n$/)

    const full = await piped.run('fill')
    assert.ok(full.dropped > 0)
    await sleep(250)
    const stuck = await piped.run('state')
    assert.equal(stuck.at, full.at)

    let text = ''
    while (!text.includes('were dropped')) {
      text += piped.read()
      await sleep(10)
    }
    const moving = await piped.run('state')
    assert.ok(moving.at > stuck.at)
    assert.equal(moving.dropped, 0)
    const lines = text.trimEnd().split('\n')
    assert.match(
      lines.pop() ?? '',
      new RegExp(`^W.* main\\] "Lines were dropped" lines=${2000 - lines.length}$`),
    )
    assert.ok(lines.every((line) => /^I.*"Fill" i=\d+ text="x{200}"$/.test(line)))
    assert.equal(await piped.end('close'), 0)
  })

  test('does not keep the process alive while the pipe is full', async (t) => {
    const piped = await start(t)
    await piped.run('fill')
    assert.equal(await piped.end('disconnect'), 0)
  })

  test('does not delay a fatal exit while the pipe is full', async (t) => {
    const piped = await start(t)
    await piped.run('fill')
    assert.equal(await piped.end('crash'), 3)
  })

  test('delivers the last line of a fatal exit when the pipe is read', async (t) => {
    const piped = await start(t)
    const code = piped.end('crash')
    let text = ''
    while (piped.child.exitCode === null) {
      text += piped.read()
      await sleep(1)
    }
    assert.equal(await code, 3)
    assert.match(text + piped.read(), /E.*"Fatal"\n|were dropped/)
  })

  test('neither ends nor blocks the process when the reader is closed', async (t) => {
    const piped = await start(t)
    const before = await piped.run('state')
    piped.closeReader()
    const after = await piped.run('fill')
    await sleep(100)
    assert.equal((await piped.run('state')).at, after.at)
    assert.ok(after.at >= before.at)
    assert.equal(await piped.end('close'), 0)
  })
})
