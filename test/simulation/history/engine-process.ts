/**
 * Replaces src/history/engine/engine-process.ts in the simulation: the jobs of the process with DuckDB, with files
 * of JSON. It is a process of its own: it goes on while the replica is stopped, and its segment is lost when it ends.
 */

import { hash } from 'node:crypto'
import { DayNames } from '../../../src/history/engine/archived-row.ts'
import { EngineDied, EngineError } from '../../../src/history/engine/engine-error.ts'
import type { EngineCounters } from '../../../src/history/engine/engine-process.ts'
import type {
  ArchivedChange,
  CallOptions,
  InputFile,
  MergeArgument,
  Merged,
  WrittenFile,
} from '../../../src/history/engine/protocol.ts'
import { dayFolder, rollupFolder, type StoredFile } from '../../../src/history/manifest.ts'
import { AbortListener } from '../../../src/lib/abort.ts'
import { Random } from '../../support/random.ts'
import { currentProcess } from '../kernel/current.ts'
import type { SimulatedProcess } from '../kernel/process.ts'
import { type ArchiveHost, archiveHostOf } from './archive-host.ts'
import {
  isRemoved,
  mergedRow,
  type RollupFile,
  type Row,
  type RowFile,
  segmentRow,
} from './archived-rows.ts'

/** How long a job takes. */
const appendMs = { least: 0.2, most: 4 }
const writeMs = { least: 10, most: 150 }
const timeoutMsMost = 24 * 3_600_000

interface Call {
  readonly durationMs: number
  readonly run: () => unknown
  readonly settle: (act: () => unknown) => void
}

/** By cluster, day and uid. */
type Segment = Map<string, { readonly cluster: string; readonly date: string; row: Row }>

export class EngineProcess {
  readonly #process: SimulatedProcess
  readonly #host: ArchiveHost
  readonly #folder: string
  readonly #random: Random
  readonly #days = new DayNames()
  readonly #waiting: Call[] = []
  #running: Call | undefined
  /** Undefined before `reset`, and after the process ended. */
  #segment: Segment | undefined
  #isClosed = false
  #starts = 1
  #deaths = 0

  constructor({ folder }: { readonly folder: string }) {
    const process = currentProcess() as SimulatedProcess
    this.#process = process
    this.#host = archiveHostOf(process)
    this.#folder = folder
    this.#random = new Random(process.random.below(2 ** 32))
    this.#host.engines.add(this)
  }

  get counters(): EngineCounters {
    const running = this.#running === undefined ? 0 : 1
    const waiting = this.#waiting.length
    return { starts: this.#starts, deaths: this.#deaths, running, waiting, rssBytes: 0 }
  }

  async call(job: string, argument: unknown, options: CallOptions = {}): Promise<unknown> {
    const { signal, timeoutMs = timeoutMsMost } = options
    signal?.throwIfAborted()
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const settle = (act: () => unknown) => {
      this.#process.after(0, () => {
        try {
          resolve(act())
        } catch (error) {
          reject(error)
        }
      })
    }
    if (this.#isClosed) throw new EngineError('closed', 'the server stops')
    const call = { ...this.#job(job, argument), settle }
    this.#waiting.push(call)
    this.advance()
    const giveUp = (reason: unknown): void => {
      reject(reason)
      this.#giveUp(call)
    }
    const timer = setTimeout(() => giveUp(new EngineError('timeout', `${job} is slow`)), timeoutMs)
    using _listener = signal && new AbortListener(signal, () => giveUp(signal.reason))
    try {
      return await promise
    } finally {
      clearTimeout(timer)
    }
  }

  /** A job that runs is interrupted, if need be by the end of the process. */
  #giveUp(call: Call): void {
    const at = this.#waiting.indexOf(call)
    if (at >= 0) this.#waiting.splice(at, 1)
    else if (this.#running === call) this.kill()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const error = new EngineError('closed', 'the server stops')
    this.#fail(error, [...this.#waiting.splice(0), ...this.#taken()])
  }

  /** What runs is interrupted, and the segment is lost. */
  kill(): void {
    this.#segment = undefined
    this.#deaths++
    this.#starts++
    this.#fail(new EngineDied('the process ended'), this.#taken())
    this.advance()
  }

  /** One job after the other. */
  advance(): void {
    const { engines, bucket } = this.#host
    if (this.#running !== undefined || engines.isStopped) return
    const call = this.#waiting.shift()
    if (call === undefined) return
    this.#running = call
    bucket.after(call.durationMs, () => this.#finish(call))
  }

  #finish(call: Call): void {
    if (this.#running !== call) return
    if (this.#host.engines.isStopped) {
      this.#waiting.unshift(call)
      this.#running = undefined
      return
    }
    this.#running = undefined
    let act: () => unknown
    try {
      const result = call.run()
      act = () => result
    } catch (error) {
      act = () => {
        throw error
      }
    }
    call.settle(act)
    this.advance()
  }

  #taken(): readonly Call[] {
    const call = this.#running
    this.#running = undefined
    return call === undefined ? [] : [call]
  }

  #fail(error: EngineError, calls: readonly Call[]): void {
    for (const { settle } of calls) {
      settle(() => {
        throw error
      })
    }
  }

  #job(job: string, argument: unknown): Pick<Call, 'durationMs' | 'run'> {
    const random = this.#random
    const appending = { durationMs: random.between(appendMs.least, appendMs.most) }
    const writing = { durationMs: random.between(writeMs.least, writeMs.most) }
    switch (job) {
      case 'reset':
        return { ...appending, run: () => this.#reset() }
      case 'append': {
        // The bodies are views: they are read before anything else happens.
        const changes = argument as readonly ArchivedChange[]
        const rows = changes.map((change) => segmentRow(change, this.#days))
        return { ...appending, run: () => this.#append(rows) }
      }
      case 'flush':
        return { ...writing, run: () => this.#flush(argument as number) }
      case 'merge':
        return { ...writing, run: () => this.#merge(argument as MergeArgument) }
      default:
        throw new Error(`the job ${job} is not simulated`)
    }
  }

  #reset(): void {
    this.#segment = new Map()
  }

  get #current(): Segment {
    if (this.#segment !== undefined) return this.#segment
    throw new EngineError('lost', 'there is no segment: reset it first')
  }

  #append(rows: readonly ReturnType<typeof segmentRow>[]) {
    const segment = this.#current
    for (const { date, ...row } of rows) {
      const { cluster } = row.key
      const id = `${cluster}/${date}/${row.uid}`
      const known = segment.get(id)
      if (known === undefined) segment.set(id, { cluster, date, row })
      else known.row = mergedRow(known.row, row)
    }
    return { rejected: [] }
  }

  #flush(sequence: number): readonly WrittenFile[] {
    const entries = [...this.#current.values()]
    this.#segment = new Map()
    const days = Map.groupBy(entries, dayFolder)
    return [...days.values()].map((ofDay) => {
      const [{ cluster, date }] = ofDay as [(typeof ofDay)[0]]
      const rows = ofDay.map(({ row }) => ({ ...row, sequence }))
      return this.#write({ cluster, date, rows })
    })
  }

  #merge({ day, inputs, removals }: MergeArgument): Merged {
    const all = inputs.flatMap((input) => this.#read(input).rows)
    const kept = all.filter((row) => !isRemoved(row, removals))
    const rows = new Map<string, Row>()
    for (const row of kept) {
      const known = rows.get(row.uid)
      rows.set(row.uid, known === undefined ? row : mergedRow(known, row))
    }
    const { cluster, date } = day
    return {
      written:
        rows.size === 0 ? undefined : this.#write({ cluster, date, rows: [...rows.values()] }),
      removedRows: all.length - kept.length,
    }
  }

  /** In place, as in a directory. */
  #read({ file }: InputFile): RowFile {
    const found = this.#host.bucket.get(file.name)
    if (found === undefined) throw new EngineError('failed', `there is no ${file.name}`)
    return JSON.parse(found.bytes.toString()) as RowFile
  }

  #write(content: RowFile): WrittenFile {
    const { cluster, date, rows } = content
    const digits = () =>
      this.#random
        .below(2 ** 32)
        .toString(16)
        .padStart(8, '0')
    const id = `${digits()}${digits()}`
    const events = this.#file(`${dayFolder(content)}/${id}.parquet`, content)
    const occurrences = sum(rows.flatMap(({ spans }) => spans))
    const rollup: RollupFile = { occurrences }
    const beside = this.#file(`${rollupFolder(content)}/${id}.parquet`, rollup)
    const seen = bounds(rows.map(({ lastSeenMs }) => lastSeenMs))
    return {
      cluster,
      date,
      path: events.path,
      rollupPath: beside.path,
      file: {
        ...events.stored,
        rows: rows.length,
        sequences: bounds(rows.map(({ sequence }) => sequence)),
        seen,
        occurred: seen,
        namespaces: ['', ''],
        kinds: ['', ''],
        objects: ['', ''],
        rollup: beside.stored,
      },
    }
  }

  #file(name: string, content: RowFile | RollupFile): { path: string; stored: StoredFile } {
    const bytes = Buffer.from(JSON.stringify(content))
    const path = `${this.#folder}/${name.replaceAll('/', '_')}`
    this.#process.files.set(path, bytes)
    return { path, stored: { name, bytes: bytes.length, sha256: hash('sha256', bytes) } }
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}

function bounds(numbers: readonly number[]): readonly [number, number] {
  return [Math.min(...numbers), Math.max(...numbers)]
}
