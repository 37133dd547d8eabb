/** Counts the lines of production code that have run, by folder, with V8's own counters. */
import { readdirSync, readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { stripTypeScriptTypes } from 'node:module'
import { fileURLToPath } from 'node:url'

const sources = new URL('../../src/', import.meta.url).href
const folders = ['etcd', 'storage', 'cache', 'retention', 'registry']

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
    const rangesOf = new Map(
      result.map(({ url, functions }) => [url, functions.flatMap((one) => one.ranges)]),
    )
    const lines = new Map<string, { run: number; all: number; missed: string[] }>()
    for (const { folder, url } of productionFiles()) {
      // A file that was not loaded has not run at all.
      const ranges = rangesOf.get(url) ?? [nothing]
      const { run, all } = linesOf(codeOf(url), ranges)
      const entry = lines.get(folder) ?? { run: 0, all: 0, missed: [] }
      entry.run += run
      entry.all += all
      if (run < all * 0.5) entry.missed.push(`${url.slice(sources.length)} ${run}/${all}`)
      lines.set(folder, entry)
    }
    return [...lines]
      .map(([folder, { run, all, missed }]) => {
        const share = ((run / all) * 100).toFixed(1)
        const rest = missed.length === 0 ? '' : `; under half: ${missed.join(', ')}`
        return `coverage of src/${folder}: ${share} % of ${all} lines${rest}`
      })
      .join('\n')
  }
}

function productionFiles(): readonly { readonly folder: string; readonly url: string }[] {
  return folders.flatMap((folder) =>
    readdirSync(fileURLToPath(`${sources}${folder}`), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !/\.(test|fixture)\.ts$|_pb\.ts$/.test(name))
      .map((name) => ({ folder, url: `${sources}${folder}/${name}` })),
  )
}

/** Blanks out types, which are not code; every other character stays where it is. */
function codeOf(url: string): string {
  return stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8'))
}

const nothing: Range = { startOffset: 0, endOffset: Number.POSITIVE_INFINITY, count: 0 }

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
