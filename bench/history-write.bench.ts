/**
 * What it costs to archive events: the CPU time of the process with DuckDB and of the server, memory,
 * and the bytes of the files, for segments and for the merge of a day.
 *
 *   npm run bench -- history-write             400,000 events
 *   node bench/history-write.bench.ts 2000000
 *
 * Events are those of test/support/made-cluster.ts. One in ten is seen again in the next segment.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EngineProcess } from '../src/history/engine/engine-process.ts'
import type { ArchivedChange, WriterJobs, WrittenFile } from '../src/history/engine/protocol.ts'
import { writeJobsOf } from '../src/history/engine/writer.ts'
import { storedEvent } from '../test/support/seed-events.ts'

const events = Number(process.argv[2] ?? 400_000)
/** About 64 MB of bodies. */
const perSegment = 100_000
const perCall = 5_000
const HOUR_MS = 3_600_000
const MIB = 1024 ** 2
/** The unit of CPU time of the kernel. */
const ticksPerSecond = 100
const noTrailer = Buffer.alloc(0)
const day = { cluster: 'local', date: '2026-06-05' }
const untilMs = Date.parse(`${day.date}T23:59:00Z`)
const made = { count: events, untilMs, spanMs: 23 * HOUR_MS }

const folder = await mkdtemp(join(tmpdir(), 'tidings-bench-'))
const engine = new EngineProcess<WriterJobs>({
  role: 'writer',
  folder,
  readFolders: [],
  memoryBytes: 512 * MIB,
  spillBytes: 16 * 1024 * MIB,
  threads: 1,
  connections: 1,
})

async function measure(): Promise<void> {
  const jobs = writeJobsOf(engine)
  await jobs.reset()
  const files: WrittenFile[] = []
  const cost = new Cost()
  await cost.start()
  for (let first = 0; first < events; first += perSegment) {
    const end = Math.min(first + perSegment, events)
    for (let from = first; from < end; from += perCall) {
      await jobs.append(cost.without(() => changesOf(from, Math.min(from + perCall, end))))
    }
    files.push(...(await jobs.flush(1 + first / perSegment)))
  }
  await report('segments', await cost.stop(), files)
  await cost.start()
  const { written } = await jobs.merge(day, files, [])
  await report('merge', await cost.stop(), written === undefined ? [] : [written])
}

/** Changes of the events with these numbers, and of some of the segment before. */
function changesOf(from: number, to: number): readonly ArchivedChange[] {
  const changes: ArchivedChange[] = []
  for (let n = from; n < to; n++) {
    changes.push(changeOf(n, storedEvent(made, n).body, undefined))
    if (n % 10 !== 0 || n < perSegment) continue
    const earlier = storedEvent(made, n - perSegment).body
    changes.push(changeOf(n - perSegment, raised(earlier), { body: earlier, trailer: noTrailer }))
  }
  return changes
}

function changeOf(n: number, body: Buffer, previous: ArchivedChange['previous']): ArchivedChange {
  const { namespace, name } = storedEvent(made, n)
  const key = { cluster: day.cluster, namespace, name }
  const version = 1_000 * (n + 1) + (previous === undefined ? 0 : 1)
  return { key, body, trailer: noTrailer, version, writtenAtMs: untilMs, previous }
}

/** The event as it was seen once more. */
function raised(body: Buffer): Buffer {
  const event = JSON.parse(body.toString())
  const { series, deprecatedCount = 1 } = event
  const again =
    series === undefined
      ? { deprecatedCount: deprecatedCount + 1 }
      : { series: { ...series, count: series.count + 1 } }
  return Buffer.from(JSON.stringify({ ...event, ...again }))
}

interface Costs {
  readonly seconds: number
  readonly engineSeconds: number
  readonly serverSeconds: number
}

/** CPU time of both processes, without what is taken to make events. */
class Cost {
  #beganMs = 0
  #engine = 0
  #server: NodeJS.CpuUsage = process.cpuUsage()
  #excluded = 0
  #excludedMs = 0

  async start(): Promise<void> {
    this.#engine = await engineSeconds()
    this.#server = process.cpuUsage()
    this.#beganMs = performance.now()
    this.#excluded = 0
    this.#excludedMs = 0
  }

  without<T>(make: () => T): T {
    const before = process.cpuUsage()
    const beganMs = performance.now()
    const result = make()
    this.#excluded += secondsOf(process.cpuUsage(before))
    this.#excludedMs += performance.now() - beganMs
    return result
  }

  async stop(): Promise<Costs> {
    return {
      seconds: (performance.now() - this.#beganMs - this.#excludedMs) / 1_000,
      engineSeconds: (await engineSeconds()) - this.#engine,
      serverSeconds: secondsOf(process.cpuUsage(this.#server)) - this.#excluded,
    }
  }
}

function secondsOf({ user, system }: NodeJS.CpuUsage): number {
  return (user + system) / 1e6
}

async function engineSeconds(): Promise<number> {
  const stat = await readFile(`/proc/${engine.pid}/stat`, 'utf8')
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')'))
    .split(' ')
    .slice(12, 14)
    .map(Number)
  return (user + system) / ticksPerSecond
}

async function mostMib(): Promise<number> {
  const status = await readFile(`/proc/${engine.pid}/status`, 'utf8')
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1_024
}

async function report(what: string, cost: Costs, files: readonly WrittenFile[]): Promise<void> {
  const sum = (numberOf: (file: WrittenFile) => number) =>
    files.reduce((total, file) => total + numberOf(file), 0)
  const rows = sum(({ file }) => file.rows)
  const each = (total: number) => (total / rows).toFixed(1)
  const perMillion = (seconds: number) => ((seconds * 1e6) / rows).toFixed(1)
  say(
    `${what}: ${rows} rows in ${files.length} files, ${each(sum(({ file }) => file.bytes))} bytes each, ` +
      `rollups ${each(sum(({ file }) => file.rollup.bytes))}; for a million rows ` +
      `${perMillion(cost.engineSeconds)} s CPU of DuckDB's process, ` +
      `${perMillion(cost.serverSeconds)} s of the server, ${perMillion(cost.seconds)} s in all; ` +
      `memory at most ${(await mostMib()).toFixed(0)} MiB`,
  )
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}

try {
  await measure()
} finally {
  await engine.close()
  await rm(folder, { recursive: true, force: true })
}
