/** How much of the production code has run: lines of each room, by V8's own counters. */
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { fileURLToPath } from 'node:url'

const sources = new URL('../../src/', import.meta.url).href
const rooms = ['etcd', 'storage', 'cache', 'retention', 'registry']

interface Range {
  readonly startOffset: number
  readonly endOffset: number
  readonly count: number
}

/** Starts to count; the returned function stops it and returns a table. */
export async function startCoverage(): Promise<() => Promise<string>> {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true })
  return async () => {
    const { result } = await session.post('Profiler.takePreciseCoverage')
    session.disconnect()
    const lines = new Map<string, { run: number; all: number; missed: string[] }>()
    for (const { url, functions } of result) {
      const room = rooms.find((name) => url.startsWith(`${sources}${name}/`))
      if (room === undefined) continue
      const ranges = functions.flatMap((one) => one.ranges)
      const { run, all } = linesOf(readFileSync(fileURLToPath(url), 'utf8'), ranges)
      const entry = lines.get(room) ?? { run: 0, all: 0, missed: [] }
      entry.run += run
      entry.all += all
      if (run < all * 0.5) entry.missed.push(`${url.slice(sources.length)} ${run}/${all}`)
      lines.set(room, entry)
    }
    return [...lines]
      .map(([room, { run, all, missed }]) => {
        const share = ((run / all) * 100).toFixed(1)
        const rest = missed.length === 0 ? '' : `; under half: ${missed.join(', ')}`
        return `coverage of src/${room}: ${share} % of ${all} lines${rest}`
      })
      .join('\n')
  }
}

/** Lines with code; one has run unless a range with the count 0 covers its start. */
function linesOf(text: string, ranges: readonly Range[]): { run: number; all: number } {
  const never = ranges.filter(({ count }) => count === 0)
  let offset = 0
  let run = 0
  let all = 0
  for (const line of text.split('\n')) {
    const code = line.trim()
    const start = offset + line.length - line.trimStart().length
    offset += line.length + 1
    if (code === '' || /^(\/\/|\/\*|\*|[)}\]]|import |export type|export interface)/.test(code))
      continue
    all++
    if (!never.some(({ startOffset, endOffset }) => start >= startOffset && start < endOffset))
      run++
  }
  return { run, all }
}
