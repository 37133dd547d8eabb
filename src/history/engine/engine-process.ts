/**
 * A process with DuckDB, as the server sees it. It is started by the first call, and again by the
 * first call after it ended. It ends when the server does, however that ends: its socket closes.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { Socket } from 'node:net'
import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { AbortListener } from '../../lib/abort.ts'
import { Backoff } from '../../lib/backoff.ts'
import { EngineDied, EngineError } from './engine-error.ts'
import { encodeFrame, FrameReader, sendFrame } from './frames.ts'
import type {
  CallOptions,
  EngineRequest,
  EngineResponse,
  EngineSettings,
  JobTypes,
} from './protocol.ts'

export interface EngineOptions extends EngineSettings {
  /** What JavaScript may hold in memory. Default: 256 MiB. */
  readonly heapBytes?: number | undefined
  /** How many calls wait for others to finish; more fail with `busy`. Default: 100. */
  readonly waitingMax?: number | undefined
  /** Ends a process that had nothing to do for so long, for its memory. Default: it stays. */
  readonly idleMsMax?: number | undefined
  /** The program that is started. Tests start another one. */
  readonly program?: string | undefined
}

export interface EngineCounters {
  readonly starts: number
  /** Ends that nobody asked for, and kills of a process that did not stop a query. */
  readonly deaths: number
  readonly running: number
  readonly waiting: number
  /** The memory of the process when it last answered; 0 if there is none. */
  readonly rssBytes: number
}

const HEAP_BYTES = 256 * 1024 * 1024
const WAITING_MAX = 100
/** No call takes longer. Timers of Node cannot wait for more than 24 days. */
const TIMEOUT_MS_MAX = 24 * 3_600_000
/** What a query may take to stop after it was interrupted. */
const STOP_MS = 2_000
const PAUSES = { firstMs: 100, mostMs: 5_000 }
/** What is remembered of the last words of a process. */
const WORDS_MAX = 4_096

/** Beside this file's folder, as source or as built. */
const PROGRAM = fileURLToPath(new URL(`../worker${extname(import.meta.url)}`, import.meta.url))

export class EngineProcess<Jobs extends JobTypes<Jobs>> {
  readonly #options: EngineOptions
  readonly #backoff = new Backoff(PAUSES)
  /** In the order in which they came. */
  readonly #waiting: Call[] = []
  #running: Running | undefined
  #lastId = 0
  #starts = 0
  #deaths = 0
  #isClosed = false
  /** Set while the next start has to wait. */
  #pause: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined

  constructor(options: EngineOptions) {
    this.#options = options
  }

  get counters(): EngineCounters {
    return {
      starts: this.#starts,
      deaths: this.#deaths,
      running: this.#running?.calls.size ?? 0,
      waiting: this.#waiting.length,
      rssBytes: this.#running?.rss ?? 0,
    }
  }

  /** Undefined when no process is running. */
  get pid(): number | undefined {
    return this.#running?.child.pid
  }

  /** Rejects with an `EngineError`, or with the reason of the signal. */
  call<Name extends keyof Jobs & string>(
    job: Name,
    argument: Parameters<Jobs[Name]>[0],
    { signal, timeoutMs = TIMEOUT_MS_MAX }: CallOptions = {},
  ): ReturnType<Jobs[Name]> {
    const answered = new Promise<unknown>((resolve, reject) => {
      signal?.throwIfAborted()
      if (this.#isClosed) throw closed()
      if (this.#waiting.length >= (this.#options.waitingMax ?? WAITING_MAX)) {
        throw new EngineError('busy', `${this.#waiting.length} calls wait for ${this.#name}`)
      }
      const frame = encode({ id: ++this.#lastId, job, argument })
      const call = new Call({ id: this.#lastId, frame, resolve, reject })
      call.limit({ signal, timeoutMs, job, giveUp: () => this.#giveUp(call) })
      this.#waiting.push(call)
      this.#advance()
    })
    // The table of jobs of the process has the same types.
    return answered as ReturnType<Jobs[Name]>
  }

  /** Ends the process. Calls that run or wait fail with `closed`. */
  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#pause)
    clearTimeout(this.#idle)
    for (const call of this.#waiting.splice(0)) call.fail(closed())
    const running = this.#running
    if (running === undefined) return
    for (const call of running.calls.values()) call.fail(closed())
    running.end()
    await running.ended
  }

  get #name(): string {
    return `the history ${this.#options.role}`
  }

  /** Gives waiting calls to the process, if it has room. */
  #advance(): void {
    clearTimeout(this.#idle)
    if (this.#pause !== undefined || this.#isClosed) return
    while (this.#waiting.length > 0) {
      this.#running ??= this.#start()
      const running = this.#running
      if (running === undefined) return
      if (running.isStopping || running.calls.size >= this.#options.connections) return
      const call = this.#waiting.shift()
      if (call !== undefined) running.send(call)
    }
    const { idleMsMax } = this.#options
    if (idleMsMax === undefined || this.#running?.calls.size !== 0) return
    this.#idle = setTimeout(() => this.#running?.rest(), idleMsMax).unref()
  }

  /** Undefined when the system has no room for another process. */
  #start(): Running | undefined {
    this.#starts++
    try {
      const running: Running = new Running(this.#options, {
        answered: (isSuccess) => {
          if (isSuccess) this.#backoff.reset()
          this.#advance()
        },
        ended: (how) => this.#ended(running, how),
      })
      return running
    } catch (error) {
      this.#deaths++
      const died = new EngineDied(`${this.#name} did not start: ${String(error)}`)
      for (const call of this.#waiting.splice(0)) call.fail(died)
      this.#waitToStart()
      return undefined
    }
  }

  #ended(running: Running, how: string): void {
    this.#running = undefined
    if (this.#isClosed) return
    if (running.isResting) {
      this.#advance()
      return
    }
    this.#deaths++
    const error = new EngineDied(`${this.#name} ended: ${how}`)
    for (const call of running.calls.values()) call.fail(error)
    if (!running.hasSucceeded) this.#waitToStart()
    this.#advance()
  }

  #waitToStart(): void {
    this.#pause = setTimeout(() => {
      this.#pause = undefined
      this.#advance()
    }, this.#backoff.next())
  }

  /** The caller no longer waits. */
  #giveUp(call: Call): void {
    const at = this.#waiting.indexOf(call)
    if (at >= 0) this.#waiting.splice(at, 1)
    else this.#running?.cancel(call)
  }
}

function encode(request: EngineRequest): ReturnType<typeof encodeFrame> {
  try {
    return encodeFrame(request)
  } catch (cause) {
    throw new EngineError('failed', cause instanceof Error ? cause.message : String(cause), cause)
  }
}

function closed(): EngineError {
  return new EngineError('closed', 'the server stops')
}

interface CallParts {
  readonly id: number
  readonly frame: ReturnType<typeof encodeFrame>
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
}

interface CallLimits {
  readonly signal: AbortSignal | undefined
  readonly timeoutMs: number
  readonly job: string
  readonly giveUp: () => void
}

/** Settles once, whatever comes first: the answer, the end of its time or of the process. */
class Call {
  readonly id: number
  readonly frame: ReturnType<typeof encodeFrame>
  readonly #parts: CallParts
  #timer: NodeJS.Timeout | undefined
  #listener: AbortListener | undefined

  constructor(parts: CallParts) {
    this.id = parts.id
    this.frame = parts.frame
    this.#parts = parts
  }

  limit({ signal, timeoutMs, job, giveUp }: CallLimits): void {
    this.#timer = setTimeout(() => {
      this.fail(new EngineError('timeout', `${job} took longer than ${timeoutMs} ms`))
      giveUp()
    }, timeoutMs)
    this.#listener =
      signal &&
      new AbortListener(signal, () => {
        this.fail(signal.reason)
        giveUp()
      })
  }

  succeed(result: unknown): void {
    this.#release()
    this.#parts.resolve(result)
  }

  fail(error: unknown): void {
    this.#release()
    this.#parts.reject(error)
  }

  #release(): void {
    clearTimeout(this.#timer)
    this.#listener?.[Symbol.dispose]()
  }
}

interface RunningEvents {
  readonly answered: (isSuccess: boolean) => void
  readonly ended: (how: string) => void
}

/** One process, from its start to its end. */
class Running {
  readonly child: ChildProcess
  readonly ended: Promise<void>
  /** Given to the process and not answered, also when the caller no longer waits. */
  readonly calls: Map<number, Call> = new Map()
  rss = 0
  hasSucceeded = false
  /** It was killed, but has not ended yet. */
  isStopping = false
  /** It was ended because it had nothing to do. */
  isResting = false
  readonly #socket: Socket
  readonly #events: RunningEvents
  readonly #stopping: Map<number, NodeJS.Timeout> = new Map()
  #words = ''

  constructor(options: EngineOptions, events: RunningEvents) {
    this.#events = events
    this.child = spawnProgram(options)
    this.ended = new Promise((resolve) => this.child.once('close', () => resolve()))
    this.child.once('close', (code, signal) => this.#end(code, signal))
    this.child.once('error', (error) => this.#hear(error.message))
    this.child.stderr?.setEncoding('utf8').on('data', (text: string) => this.#hear(text))
    const socket = this.child.stdio[3]
    if (!(socket instanceof Socket)) throw new TypeError('the socket of the process is missing')
    this.#socket = socket
    const frames = new FrameReader((message) => this.#answer(message as EngineResponse))
    socket.on('data', (chunk) => this.#accept(frames, chunk))
    // `close` of the process follows.
    socket.on('error', () => {})
    const { role, folder, readFolders, memoryBytes, spillBytes, threads, connections } = options
    const settings: EngineSettings = {
      role,
      folder,
      readFolders,
      memoryBytes,
      spillBytes,
      threads,
      connections,
    }
    sendFrame(socket, encodeFrame(settings))
  }

  send(call: Call): void {
    this.calls.set(call.id, call)
    sendFrame(this.#socket, call.frame)
  }

  /** Interrupts the query, and kills the process if it does not stop soon. */
  cancel({ id }: Call): void {
    if (!this.calls.has(id) || this.#stopping.has(id)) return
    sendFrame(this.#socket, encodeFrame({ cancel: id }))
    this.#stopping.set(
      id,
      setTimeout(() => this.#kill(), STOP_MS),
    )
  }

  rest(): void {
    if (this.calls.size > 0) return
    this.isResting = true
    this.end()
  }

  /** The process ends when its socket does. */
  end(): void {
    this.isStopping = true
    this.#socket.destroy()
    const timer = setTimeout(() => this.#kill(), STOP_MS)
    this.child.once('close', () => clearTimeout(timer))
  }

  #accept(frames: FrameReader, chunk: Buffer): void {
    try {
      frames.accept(chunk)
    } catch (error) {
      this.#hear(String(error))
      this.#kill()
    }
  }

  #answer(response: EngineResponse): void {
    const call = this.calls.get(response.id)
    if (call === undefined) return
    this.calls.delete(call.id)
    clearTimeout(this.#stopping.get(call.id))
    this.#stopping.delete(call.id)
    this.rss = response.rss
    const isSuccess = 'result' in response
    if (isSuccess) {
      this.hasSucceeded = true
      call.succeed(response.result)
    } else call.fail(new EngineError(response.error.kind, response.error.message))
    this.#events.answered(isSuccess)
  }

  #hear(words: string): void {
    this.#words = (this.#words + words).slice(-WORDS_MAX)
  }

  #kill(): void {
    this.isStopping = true
    this.child.kill('SIGKILL')
  }

  #end(code: number | null, signal: NodeJS.Signals | null): void {
    for (const timer of this.#stopping.values()) clearTimeout(timer)
    const how = signal === null ? `exit code ${code}` : signal
    this.#events.ended(`${how} ${this.#words.trim()}`.trim())
  }
}

function spawnProgram({ heapBytes = HEAP_BYTES, program = PROGRAM }: EngineOptions): ChildProcess {
  const heapMib = Math.ceil(heapBytes / 1024 ** 2)
  return spawn(process.execPath, [`--max-old-space-size=${heapMib}`, program], {
    // Nothing of the environment of the server, which may contain credentials.
    env: { TZ: 'UTC' },
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  })
}
