import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What h2load (of nghttp2) is to send, over and over. */
export interface Load {
  readonly url: string
  /** How long, or how many: few slow ones make a poor rate when the time cuts off the last. */
  readonly amount: { readonly seconds: number } | { readonly requests: number }
  readonly connections: number
  /** Requests under way at once on each connection. */
  readonly streams: number
  readonly headers?: Readonly<Record<string, string>>
  /** Sent by POST; without one it is GET. */
  readonly body?: Buffer
}

/** Requests a second. Each must have been answered with 2xx. */
export async function loadRate(load: Load): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-bench-'))
  try {
    const bodyFile = join(folder, 'body')
    if (load.body !== undefined) await writeFile(bodyFile, load.body)
    const report = await run([
      ...(load.url.startsWith('http://') ? ['-p', 'h2c'] : []),
      ...['-c', String(load.connections), '-m', String(load.streams), ...amountFlag(load.amount)],
      ...Object.entries(load.headers ?? {}).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
      ...(load.body === undefined ? [] : ['-d', bodyFile]),
      load.url,
    ])
    const [, perSecond] = /finished in .*?, ([\d.]+) req\/s/.exec(report) ?? []
    const isAllWell = / 0 failed, 0 errored/.test(report) && / 0 3xx, 0 4xx, 0 5xx/.test(report)
    if (perSecond === undefined || !isAllWell) throw new Error(`${load.url}:\n${report}`)
    return Number(perSecond)
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
