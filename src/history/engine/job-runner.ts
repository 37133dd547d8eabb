/** Runs the jobs that the server sends, in the process with DuckDB. */
import { readdirSync, writeFileSync } from 'node:fs'
import { Socket } from 'node:net'
import { setPriority } from 'node:os'
import type { DuckDBConnection, DuckDBInstance } from '@duckdb/node-api'
import { openDuckDb } from './duckdb.ts'
import { EngineError } from './engine-error.ts'
import { encodeFrame, FrameReader, sendFrame } from './frames.ts'
import type {
  EngineCall,
  EngineRequest,
  EngineResponse,
  EngineRole,
  EngineSettings,
  JobTypes,
} from './protocol.ts'

export interface JobContext {
  readonly settings: EngineSettings
  /** Aborts when the caller no longer waits. The statement that runs is interrupted anyway. */
  readonly signal: AbortSignal
}

/** Has the connection to itself until it returns. It is interrupted when nobody waits for it. */
export type Job<Argument, Result> = (
  connection: DuckDBConnection,
  argument: Argument,
  context: JobContext,
) => Promise<Result>

/** The jobs of a process, which both sides know by these names. */
export type JobTable<Jobs extends JobTypes<Jobs>> = {
  readonly [Name in keyof Jobs]: Job<Parameters<Jobs[Name]>[0], Awaited<ReturnType<Jobs[Name]>>>
}

/** In a table, jobs of any types. */
export type AnyJob = Job<never, unknown>

/** The descriptor of the socket to the server. */
const SOCKET = 3
/** A statement that had not begun when it was interrupted is not: it is interrupted again. */
const INTERRUPT_MS = 50
/** Messages of DuckDB repeat the statement. */
const MESSAGE_MAX = 2_048
/** Niceness: requests and writes of events come first, then the archive, then queries of it. */
const NICENESS: Readonly<Record<EngineRole, number>> = { writer: 5, reader: 10 }

/** Ends the process when the socket closes. */
export function runJobs(
  jobs: Readonly<Record<EngineRole, Readonly<Record<string, AnyJob>>>>,
): void {
  // Ctrl-C reaches all processes of a terminal, but the server decides when this one ends.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {})
  const socket = new Socket({ fd: SOCKET })
  let runner: Promise<Runner> | undefined
  const frames = new FrameReader((message) => {
    if (runner === undefined) runner = startRunner(message as EngineSettings, { jobs, socket })
    else runner.then((started) => started.accept(message as EngineRequest), die)
  })
  socket.on('data', (chunk) => frames.accept(chunk))
  // An exit would wait for queries, and nobody waits for them any longer.
  socket.on('close', () => process.kill(process.pid, 'SIGKILL'))
  // `close` follows.
  socket.on('error', () => {})
}

interface RunnerParts {
  readonly jobs: Readonly<Record<EngineRole, Readonly<Record<string, AnyJob>>>>
  readonly socket: Socket
}

async function startRunner(settings: EngineSettings, parts: RunnerParts): Promise<Runner> {
  yieldToServer(settings.role)
  const instance = await openDuckDb(settings)
  return new Runner({ settings, instance, socket: parts.socket, jobs: parts.jobs[settings.role] })
}

/** Before DuckDB starts its threads, which inherit the priority. */
function yieldToServer(role: EngineRole): void {
  try {
    for (const thread of readdirSync('/proc/self/task')) setPriority(Number(thread), NICENESS[role])
    // If memory is short, the kernel ends this process and not the server.
    writeFileSync('/proc/self/oom_score_adj', '500')
  } catch {
    // Not Linux, or not permitted: it works all the same.
  }
}

function die(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`, () =>
    process.exit(1),
  )
}

interface RunnerOptions {
  readonly settings: EngineSettings
  readonly instance: DuckDBInstance
  readonly socket: Socket
  readonly jobs: Readonly<Record<string, AnyJob>>
}

class Runner {
  readonly #options: RunnerOptions
  /** Free ones. The server sends no more calls at a time than it asked for connections. */
  readonly #connections: DuckDBConnection[] = []
  readonly #calls: Map<number, AbortController> = new Map()

  constructor(options: RunnerOptions) {
    this.#options = options
  }

  accept(request: EngineRequest): void {
    if ('cancel' in request) this.#calls.get(request.cancel)?.abort()
    else this.#answer(request.id, this.#run(request)).catch(die)
  }

  async #answer(id: number, work: Promise<unknown>): Promise<void> {
    const outcome = await work.then(
      (result) => ({ result }),
      (error: unknown) => ({ error: errorOf(error) }),
    )
    const rss = process.memoryUsage.rss()
    sendFrame(this.#options.socket, encodeOrFail({ id, rss, ...outcome }))
  }

  async #run({ id, job: name, argument }: EngineCall): Promise<unknown> {
    const { settings, instance, jobs } = this.#options
    const job = Object.hasOwn(jobs, name) ? jobs[name] : undefined
    if (job === undefined) throw new EngineError('failed', `there is no job ${name}`)
    const ending = new AbortController()
    this.#calls.set(id, ending)
    const connection = this.#connections.pop() ?? (await instance.connect())
    try {
      using _ = interruptWhenAborted(connection, ending.signal)
      const { signal } = ending
      signal.throwIfAborted()
      const result = await job(connection, argument as never, { settings, signal })
      this.#connections.push(connection)
      return result
    } catch (error) {
      // Temporary tables and transactions of the job go with it.
      connection.closeSync()
      throw error
    } finally {
      this.#calls.delete(id)
    }
  }
}

function interruptWhenAborted(connection: DuckDBConnection, signal: AbortSignal): Disposable {
  let timer: NodeJS.Timeout | undefined
  const interrupt = () => connection.interrupt()
  const begin = () => {
    interrupt()
    timer = setInterval(interrupt, INTERRUPT_MS)
  }
  signal.addEventListener('abort', begin)
  return {
    [Symbol.dispose]: () => {
      signal.removeEventListener('abort', begin)
      clearInterval(timer)
    },
  }
}

function encodeOrFail(response: EngineResponse): ReturnType<typeof encodeFrame> {
  try {
    return encodeFrame(response)
  } catch (error) {
    const { id, rss } = response
    return encodeFrame({ id, rss, error: errorOf(error) } satisfies EngineResponse)
  }
}

function errorOf(error: unknown): { kind: EngineError['kind']; message: string } {
  const message = (error instanceof Error ? error.message : String(error)).slice(0, MESSAGE_MAX)
  if (error instanceof EngineError) return { kind: error.kind, message }
  const isMemory = message.startsWith('Out of Memory Error')
  return { kind: isMemory ? 'memory' : 'failed', message }
}
