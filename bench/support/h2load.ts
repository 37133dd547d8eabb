import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The requests that h2load (of nghttp2) repeats. */
export interface Load {
  readonly url: string
  /**
   * A duration, or a number of requests: with few slow requests a rate over a fixed time is
   * inexact.
   */
  readonly amount: { readonly seconds: number } | { readonly requests: number }
  readonly connections: number
  /** Requests in flight on each connection. */
  readonly streams: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent by POST; without one the method is GET. */
  readonly body?: Buffer
}

export interface LoadOutcome {
  readonly perSecond: number
  /** Milliseconds from each request to the end of its response, in the order in which responses ended. */
  readonly latenciesMs: readonly number[]
}

/** Requests a second. Each must have a 2xx response. */
export async function loadRate(load: Load): Promise<number> {
  return (await runLoad(load)).perSecond
}

/** Each request must have a 2xx response. */
export async function runLoad(load: Load): Promise<LoadOutcome> {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-bench-'))
  try {
    const bodyFile = join(folder, 'body')
    const logFile = join(folder, 'log')
    if (load.body !== undefined) await writeFile(bodyFile, load.body)
    const report = await run([
      ...(load.url.startsWith('http://') ? ['-p', 'h2c'] : []),
      '-c',
      String(load.connections),
      '-m',
      String(load.streams),
      ...amountFlag(load.amount),
      ...Object.entries(load.headers ?? {}).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
      ...(load.body === undefined ? [] : ['-d', bodyFile]),
      `--log-file=${logFile}`,
      load.url,
    ])
    const [, perSecond] = /finished in .*?, ([\d.]+) req\/s/.exec(report) ?? []
    const isAllWell = / 0 failed, 0 errored/.test(report) && / 0 3xx, 0 4xx, 0 5xx/.test(report)
    if (perSecond === undefined || !isAllWell) throw new Error(`${load.url}:\n${report}`)
    const rows = (await readFile(logFile, 'utf8')).trim().split('\n')
    return {
      perSecond: Number(perSecond),
      latenciesMs: rows.map((row) => Number(row.split('\t')[2]) / 1_000),
    }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function amountFlag(amount: Load['amount']): readonly string[] {
  return 'seconds' in amount ? ['-D', String(amount.seconds)] : ['-n', String(amount.requests)]
}

async function run(args: readonly string[]): Promise<string> {
  const child = spawn('h2load', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk
  })
  await once(child, 'close')
  return output
}
