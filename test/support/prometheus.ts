import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const programs = join(import.meta.dirname, '../../.cache/prometheus/usr/bin')
const START_MS_MAX = 30_000

/** A series of an instant query. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [at: number, value: string]
}

/** A real Prometheus on a port that the kernel chose; stopped, and its data removed, at the end. */
export class Prometheus implements AsyncDisposable {
  readonly #process: ChildProcess
  readonly #folder: string
  readonly #address: string

  static async start(config: string): Promise<Prometheus> {
    const folder = await mkdtemp(join(tmpdir(), 'tidings-prometheus-'))
    await writeFile(join(folder, 'prometheus.yml'), config)
    const child = spawn(
      programOf('prometheus'),
      [
        `--config.file=${join(folder, 'prometheus.yml')}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        '--web.listen-address=127.0.0.1:0',
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    )
    const said: string[] = []
    let address = ''
    const { promise, resolve, reject } = Promise.withResolvers<string>()
    child.once('exit', () => reject(new Error(said.join('\n'))))
    const late = setTimeout(() => reject(new Error(said.join('\n'))), START_MS_MAX)
    createInterface({ input: child.stderr }).on('line', (line) => {
      said.push(line)
      address = /Listening on.*?address=(\S+)/.exec(line)?.[1] ?? address
      if (line.includes('Server is ready to receive web requests')) resolve(address)
    })
    try {
      return new Prometheus(child, folder, await promise)
    } catch (error) {
      child.kill('SIGKILL')
      await rm(folder, { recursive: true, force: true })
      throw error
    } finally {
      clearTimeout(late)
    }
  }

  private constructor(child: ChildProcess, folder: string, address: string) {
    this.#process = child
    this.#folder = folder
    this.#address = address
  }

  /** The result of an instant query; fails with the message of Prometheus. */
  async query(expression: string): Promise<readonly Sample[]> {
    const { result } = await this.get<{ readonly result: readonly Sample[] }>(
      `query?query=${encodeURIComponent(expression)}`,
    )
    return result
  }

  /** The `data` of a path below `/api/v1/`. */
  async get<T>(path: string): Promise<T> {
    const response = await fetch(`http://${this.#address}/api/v1/${path}`)
    const { status, data, error, warnings } = (await response.json()) as Record<string, unknown>
    assert.deepEqual(
      { status, error, warnings },
      { status: 'success', error: undefined, warnings: undefined },
      path,
    )
    return data as T
  }

  /** Its metrics about itself, as text. */
  async ownMetrics(): Promise<string> {
    return (await fetch(`http://${this.#address}/metrics`)).text()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, 'exit')
    this.#process.kill('SIGKILL')
    await ended
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Runs promtool; fails with its output unless it succeeds. */
export async function promtool(args: readonly string[], input = ''): Promise<void> {
  const child = spawn(programOf('promtool'), args, { stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      said += chunk
    })
  }
  child.stdin.end(input)
  const [code] = await once(child, 'close')
  assert.equal(code, 0, said)
}

function programOf(name: string): string {
  const path = join(programs, name)
  assert.ok(existsSync(path), `there is no ${path}: npm run tools -- prometheus`)
  return path
}
