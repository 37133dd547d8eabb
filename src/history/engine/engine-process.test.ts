import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { EngineDied, EngineError } from './engine-error.ts'
import type { TestJobs } from './engine-process.fixture.ts'
import { type EngineOptions, EngineProcess } from './engine-process.ts'
import { FRAME_BYTES_MAX } from './frames.ts'

const program = fileURLToPath(new URL('./engine-process.fixture.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'tidings-engine-'))
const MIB = 1024 ** 2
/** Longer than any test waits. */
const ENDLESS = 'SELECT count(*) FROM range(1000000000000) a WHERE (a.range * a.range) % 7 = 3'

after(() => rmSync(folder, { recursive: true, force: true }))

class TestEngine extends EngineProcess<TestJobs> {
  constructor(options: Partial<EngineOptions> = {}) {
    super({
      role: 'reader',
      folder: mkdtempSync(join(folder, 'engine-')),
      readFolders: [],
      memoryBytes: 64 * MIB,
      spillBytes: 64 * MIB,
      threads: 1,
      connections: 1,
      program,
      ...options,
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  runningPid(): number {
    assert.ok(this.pid !== undefined)
    return this.pid
  }
}

/** Resolves when the process with this id is gone. */
async function untilGone(pid: number): Promise<void> {
  while (isAlive(pid)) await sleep(5)
}

function isAlive(pid: number): boolean {
  // A process that ended and was not waited for still has an entry.
  if (!existsSync(`/proc/${pid}/stat`)) return false
  return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
}

async function untilRunning(engine: TestEngine, running: number): Promise<void> {
  while (engine.counters.running !== running) await sleep(5)
}

describe('EngineProcess: calls', () => {
  test('values of all kinds go there and back', async () => {
    await using engine = new TestEngine()
    const value = {
      bytes: Buffer.from([0, 255]),
      big: 2n ** 63n,
      text: 'a\0b 🦆',
      nothing: undefined,
      list: [1, null, true],
    }
    assert.deepEqual(await engine.call('echo', value), value)
    assert.equal(engine.counters.starts, 1)
    assert.ok(engine.counters.rssBytes > MIB)
  })

  test('a process that has nothing to do ends, and is started again when it has', async () => {
    await using engine = new TestEngine({ idleMsMax: 50 })
    assert.equal(await engine.call('echo', 1), 1)
    await untilGone(engine.runningPid())
    assert.equal(await engine.call('echo', 2), 2)
    assert.deepEqual([engine.counters.starts, engine.counters.deaths], [2, 0])
  })

  test('a message of many megabytes goes there and back', async () => {
    await using engine = new TestEngine()
    const value = Buffer.alloc(20 * MIB, 'history')
    assert.deepEqual(await engine.call('echo', value), value)
  })

  test('a message that is too long is refused on either side, and the process lives on', async () => {
    await using engine = new TestEngine()
    const value = Buffer.alloc(FRAME_BYTES_MAX)
    await assert.rejects(engine.call('echo', value), { kind: 'failed', message: /longer than/ })
    await assert.rejects(engine.call('grow', FRAME_BYTES_MAX), {
      kind: 'failed',
      message: /longer than/,
    })
    assert.equal(await engine.call('echo', 1), 1)
    assert.deepEqual([engine.counters.starts, engine.counters.deaths], [1, 0])
  })

  test('a job that fails rejects its call only', async () => {
    await using engine = new TestEngine()
    await assert.rejects(engine.call('fail', 'no luck'), { kind: 'failed', message: 'no luck' })
    assert.equal(await engine.call('echo', 1), 1)
    assert.deepEqual([engine.counters.starts, engine.counters.deaths], [1, 0])
  })

  test('as many calls run at a time as there are connections, and the others wait', async () => {
    await using engine = new TestEngine({ connections: 2, waitingMax: 1 })
    const ending = new AbortController()
    const { signal } = ending
    const calls = [1, 2, 3].map(() => engine.call('sql', ENDLESS, { signal }))
    const outcomes = Promise.allSettled(calls)
    assert.deepEqual([engine.counters.running, engine.counters.waiting], [2, 1])
    await assert.rejects(engine.call('echo', 1), { kind: 'busy' })
    ending.abort()
    await outcomes
    assert.equal(await engine.call('echo', 1), 1)
    assert.deepEqual([engine.counters.running, engine.counters.waiting], [0, 0])
  })
})

describe('EngineProcess: calls that end early', () => {
  test('a call that takes too long is interrupted, and the process lives on', async () => {
    await using engine = new TestEngine()
    await engine.call('echo', 1)
    const pid = engine.runningPid()
    await assert.rejects(engine.call('sql', ENDLESS, { timeoutMs: 200 }), { kind: 'timeout' })
    assert.equal(await engine.call('echo', 1), 1)
    assert.equal(engine.pid, pid)
  })

  test('an aborted call rejects with the reason, and its query is interrupted', async () => {
    await using engine = new TestEngine()
    await engine.call('echo', 1)
    const ending = new AbortController()
    const call = engine.call('sql', ENDLESS, { signal: ending.signal })
    const reason = new Error('the client left')
    ending.abort(reason)
    await assert.rejects(call, reason)
    assert.equal(await engine.call('echo', 1), 1)
    assert.equal(engine.counters.deaths, 0)
    await assert.rejects(engine.call('echo', 1, { signal: ending.signal }), reason)
  })

  test('a call that is aborted while it waits never reaches the process', async () => {
    await using engine = new TestEngine()
    const blocking = engine.call('block', 300)
    const ending = new AbortController()
    const waiting = engine.call('exit', 1, { signal: ending.signal })
    ending.abort()
    await assert.rejects(waiting, { name: 'AbortError' })
    assert.equal(await blocking, 'blocked')
    assert.equal(await engine.call('echo', 1), 1)
  })

  test('a process that does not stop is killed, and the next call starts another', async () => {
    await using engine = new TestEngine()
    await engine.call('echo', 1)
    const pid = engine.runningPid()
    await assert.rejects(engine.call('block', 60_000, { timeoutMs: 100 }), { kind: 'timeout' })
    assert.equal(await engine.call('echo', 2), 2)
    await untilGone(pid)
    assert.notEqual(engine.pid, pid)
    assert.deepEqual([engine.counters.starts, engine.counters.deaths], [2, 1])
  })
})

describe('EngineProcess: the end of the process', () => {
  test('kill -9 in the middle of a call rejects it, and the next call starts another process', async () => {
    await using engine = new TestEngine({ connections: 2 })
    await engine.call('echo', 1)
    const calls = [engine.call('sql', ENDLESS), engine.call('sql', ENDLESS)]
    const outcomes = calls.map((call) => assert.rejects(call, EngineDied))
    const waiting = engine.call('echo', 'I waited')
    await untilRunning(engine, 2)
    process.kill(engine.runningPid(), 'SIGKILL')
    await Promise.all(outcomes)
    assert.equal(await waiting, 'I waited')
    assert.deepEqual([engine.counters.starts, engine.counters.deaths], [2, 1])
  })

  test('the last words of the process are in the error', async () => {
    await using engine = new TestEngine()
    await assert.rejects(engine.call('exit', 7), {
      name: 'EngineDied',
      kind: 'died',
      message: /exit code 7 these are my last words/,
    })
  })

  test('a process that dies again and again is started less and less often', async () => {
    await using engine = new TestEngine()
    const began = performance.now()
    for (let round = 0; round < 4; round++) await assert.rejects(engine.call('exit', 1), EngineDied)
    // Pauses of 100, 200 and 400 ms, less a fifth.
    assert.ok(performance.now() - began > 560)
    assert.equal(await engine.call('echo', 1), 1)
    assert.equal(engine.counters.starts, 5)
  })

  test('a program that cannot be started rejects its calls', async () => {
    await using engine = new TestEngine({ program: join(folder, 'missing.ts') })
    await assert.rejects(engine.call('echo', 1), { kind: 'died', message: /Cannot find module/ })
  })

  test('a heap that is full ends the process, not the server', async () => {
    await using engine = new TestEngine({ heapBytes: 16 * MIB })
    const large = Array.from({ length: 500_000 }, (_, index) => ({ index }))
    await assert.rejects(engine.call('echo', large), { kind: 'died', message: /heap/ })
  })

  test('closing ends the process, and fails what runs, waits or comes later', async () => {
    const engine = new TestEngine()
    await engine.call('echo', 1)
    const pid = engine.runningPid()
    const calls = [engine.call('sql', ENDLESS), engine.call('echo', 1)]
    const outcomes = calls.map((call) => assert.rejects(call, { kind: 'closed' }))
    await engine.close()
    await Promise.all(outcomes)
    assert.equal(isAlive(pid), false)
    await assert.rejects(engine.call('echo', 1), { kind: 'closed' })
    assert.equal(engine.counters.deaths, 0)
  })

  test('the process ends when the server is killed', async () => {
    const source = `
      import { EngineProcess } from ${JSON.stringify(new URL('./engine-process.ts', import.meta.url))}
      const engine = new EngineProcess(${JSON.stringify({
        role: 'writer',
        folder: mkdtempSync(join(folder, 'engine-')),
        readFolders: [],
        memoryBytes: 64 * MIB,
        spillBytes: 64 * MIB,
        threads: 1,
        connections: 2,
        program,
      })})
      await engine.call('echo', 1)
      engine.call('sql', ${JSON.stringify(ENDLESS)})
      process.stdout.write(String(engine.pid))
      setInterval(() => {}, 1000)`
    const server = spawn(process.execPath, ['--input-type=module', '-e', source], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [pid] = await once(server.stdout, 'data')
    assert.ok(isAlive(Number(pid)))
    const began = performance.now()
    server.kill('SIGKILL')
    await untilGone(Number(pid))
    // An exit would wait until the query has ended.
    assert.ok(performance.now() - began < 10_000)
  })

  test('Ctrl-C and SIGTERM do not end the process: the server does', async () => {
    await using engine = new TestEngine()
    await engine.call('echo', 1)
    const pid = engine.runningPid()
    process.kill(pid, 'SIGINT')
    process.kill(pid, 'SIGTERM')
    assert.equal(await engine.call('echo', 2), 2)
    assert.equal(engine.pid, pid)
  })
})

describe('EngineProcess: restrictions', () => {
  test('all threads have a low priority, and the process is the first to be out of memory', async () => {
    await using engine = new TestEngine({ threads: 2 })
    await engine.call('sql', 'SELECT sum(hash(range)) FROM range(1000000)')
    const pid = engine.runningPid()
    const nice = readdirSync(`/proc/${pid}/task`).map((thread) => {
      const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
      return Number(stat.slice(stat.lastIndexOf(')')).split(' ')[17])
    })
    assert.deepEqual([...new Set(nice)], [10])
    assert.equal(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim(), '500')
  })

  test('it has nothing of the environment of the server', async () => {
    await using engine = new TestEngine()
    await engine.call('echo', 1)
    const environment = readFileSync(`/proc/${engine.runningPid()}/environ`, 'utf8')
    assert.deepEqual(environment.split('\0').filter(Boolean), ['TZ=UTC'])
  })

  test('DuckDB reads and writes in its folders only, and its settings are fixed', async () => {
    const own = mkdtempSync(join(folder, "it's "))
    const other = mkdtempSync(join(folder, 'other-'))
    await using engine = new TestEngine({ readFolders: [own] })
    const copyTo = (path: string) => `COPY (SELECT 1 AS x) TO '${path.replaceAll("'", "''")}'`
    await engine.call('sql', copyTo(join(own, 'x.parquet')))
    const from = join(own, 'x.parquet').replaceAll("'", "''")
    assert.deepEqual(await engine.call('sql', `FROM '${from}'`), [[1]])
    for (const statement of [
      copyTo(join(other, 'x.parquet')),
      copyTo(join(own, `../${other.split('/').at(-1)}/x.parquet`)),
      "SELECT * FROM read_csv('/etc/passwd')",
      "SELECT * FROM read_text('/proc/self/environ')",
      "SELECT * FROM read_parquet('https://example.com/x.parquet')",
      'INSTALL httpfs',
      'LOAD httpfs',
      `ATTACH '${join(other, 'x.db')}'`,
      "SET memory_limit = '10GB'",
      'SET enable_external_access = true',
      `SET allowed_directories = ['/']`,
    ]) {
      await assert.rejects(engine.call('sql', statement), EngineError, statement)
    }
    assert.deepEqual(readdirSync(other), [])
  })

  test('what exceeds its memory is on disk, and a query that needs more fails', async () => {
    await using engine = new TestEngine({ memoryBytes: 40 * MIB, spillBytes: 2_000 * MIB })
    const sorted = (rows: number) =>
      `SELECT max(n) FROM (SELECT row_number() OVER (ORDER BY hash(range)) AS n FROM range(${rows}))`
    assert.deepEqual(await engine.call('sql', sorted(3_000_000)), [['3000000']])
    await using small = new TestEngine({ memoryBytes: 20 * MIB, spillBytes: MIB })
    await assert.rejects(small.call('sql', sorted(3_000_000)), { kind: 'memory' })
    assert.equal(await small.call('echo', 1), 1)
  })
})

test('worker.ts starts, and knows no job of another name', async () => {
  await using engine = new TestEngine({ program: undefined })
  await assert.rejects(engine.call('echo', 1), { kind: 'failed', message: 'there is no job echo' })
})

test('the server does not load DuckDB', async () => {
  const source = `await import(${JSON.stringify(new URL('./engine-process.ts', import.meta.url))})
    console.log(process.report.getReport().sharedObjects.filter((path) => path.includes('duckdb')))`
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--input-type=module',
    '-e',
    source,
  ])
  assert.equal(stdout.trim(), '[]')
})
