/** One page of a list from the files of the archive; runs in the process that reads. */
import type { DuckDBConnection } from '@duckdb/node-api'
import type { InputFile, PageQuery, PageResult } from '../engine/protocol.ts'
import { compareBytes } from './byte-order.ts'
import { type Candidate, type CandidateQuery, type Position, readCandidates } from './candidates.ts'
import { parquetSql } from './parquet-source.ts'
import { exactNamespaces, isWithin, prunedFiles } from './pruned-files.ts'
import { rowFilter } from './requires-sql.ts'
import { readBodies } from './row-bodies.ts'
import { SqlValues } from './sql-values.ts'
import { type ListedFiles, withoutSuperseded } from './superseded.ts'

/** Namespaces that one statement names. */
const NAMESPACES_MAX = 1_000
/** Rows that one statement chooses from, for a page from which many are superseded. */
const CANDIDATES_MAX = 50_000

export async function readPage(
  connection: DuckDBConnection,
  query: PageQuery,
): Promise<PageResult> {
  const page = new PageSearch(connection, query)
  const files = prunedFiles(query.files, query)
  const cutMs = await (query.order === 'key' ? page.searchByKey(files) : page.searchByTime(files))
  const events = await readBodies(connection, page.rows, query.bytesMax)
  const { isExact } = rowFilter(query, new SqlValues())
  return {
    events,
    isExact,
    isEnd: !page.isFull && cutMs === undefined && events.length === page.rows.length,
    cutMs: events.length === page.rows.length ? cutMs : undefined,
  }
}

class PageSearch {
  readonly rows: Candidate[] = []
  readonly #connection: DuckDBConnection
  readonly #query: PageQuery
  readonly #listed: ListedFiles
  readonly #startedMs: number = performance.now()

  constructor(connection: DuckDBConnection, query: PageQuery) {
    const { sinceMs, untilMs } = query.requires ?? {}
    this.#connection = connection
    this.#query = query
    this.#listed = { files: query.files, window: { sinceMs, untilMs } }
  }

  get isFull(): boolean {
    return this.rows.length >= this.#query.limit
  }

  /**
   * From the near end, so that a page of the newest events reads one day. Each step reads twice as many
   * days as the one before: a page from many days takes few statements. Returns `cutMs`.
   */
  async searchByTime(files: readonly InputFile[]): Promise<number | undefined> {
    const { order, after, afterUid, afterMs, budgetMs = Number.POSITIVE_INFINITY } = this.#query
    const isNewest = order === 'newest'
    const behind = files.filter((file) => isBehind(file, afterMs, isNewest))
    const position = { key: after, uid: afterUid, seenMs: afterMs }
    const starts = dayStarts(behind).filter(
      (ms) => afterMs === undefined || (isNewest ? ms < afterMs : ms > afterMs),
    )
    if (isNewest) starts.reverse()
    // The last step reads what was seen on other days than those of the files.
    for (let from = 0, size = 1; from <= starts.length && !this.isFull; ) {
      const [first, last] = [starts[from - 1], starts[from + size - 1]]
      const spentMs = performance.now() - this.#startedMs
      if (from > 0 && spentMs >= budgetMs) return first
      const seen = isNewest ? { untilMs: first, sinceMs: last } : { sinceMs: first, untilMs: last }
      const step = behind.filter(({ file }) => isWithin(file.seen, seen))
      await this.#search(step, { after: position, seen })
      from += size
      if (step.length > 0) size = nextSize(size, from, { spentMs, budgetMs })
    }
    return undefined
  }

  /** Cluster by cluster, and only in the first namespaces that fill the page. Returns undefined. */
  async searchByKey(files: readonly InputFile[]): Promise<undefined> {
    const { after, afterUid } = this.#query
    const clusters = [...new Set(files.map(({ cluster }) => cluster))].sort((one, other) =>
      compareBytes(`${one}/`, `${other}/`),
    )
    for (const cluster of clusters) {
      if (this.isFull) return
      const isBefore = after !== undefined && compareBytes(`${cluster}/`, `${after.cluster}/`) < 0
      if (isBefore) continue
      const own = files.filter((file) => file.cluster === cluster)
      const position = after?.cluster === cluster ? { key: after, uid: afterUid } : undefined
      await this.#searchCluster(own, position)
    }
  }

  async #searchCluster(files: readonly InputFile[], after: Position | undefined): Promise<void> {
    const known = exactNamespaces(this.#query)
    if (known?.length === 1) {
      await this.#search(files, { after })
      return
    }
    const namespaces = await this.#namespacesIn(files, after)
    for (let from = 0; from < namespaces.length && !this.isFull; ) {
      const step: string[] = []
      let rows = 0
      for (const { namespace, count } of namespaces.slice(from, from + NAMESPACES_MAX)) {
        if (rows > this.#wanted) break
        step.push(namespace)
        rows += count
      }
      await this.#search(files, { after, namespaces: step })
      from += step.length
    }
  }

  /** How many rows each namespace has that match, in the order of keys. */
  async #namespacesIn(
    files: readonly InputFile[],
    after: Position | undefined,
  ): Promise<readonly NamespaceCount[]> {
    const values = new SqlValues()
    const source = parquetSql(files, values)
    const { branches } = rowFilter(this.#query, values)
    const rows = branches.map((where) => `SELECT namespace FROM ${source} WHERE ${where}`)
    const sql = `SELECT namespace, count(*) FROM (${rows.join(' UNION ALL ')}) GROUP BY namespace`
    const found = await values.read(this.#connection, sql)
    const first = `${after?.key?.namespace ?? ''}/`
    return found
      .getRows()
      .map(([namespace, count]) => ({ namespace: String(namespace), count: Number(count) }))
      .filter(({ namespace }) => after === undefined || compareBytes(`${namespace}/`, first) >= 0)
      .sort((one, other) => compareBytes(`${one.namespace}/`, `${other.namespace}/`))
  }

  get #wanted(): number {
    return this.#query.limit - this.rows.length
  }

  /** Adds the rows of this part of the list, which no earlier page or step had, until the page is full. */
  async #search(files: readonly InputFile[], part: ListPart): Promise<void> {
    const { order, requires, namespace } = this.#query
    let { after } = part
    let max = Math.ceil(this.#wanted * 1.25) + 16
    while (!this.isFull) {
      const wanted = { ...part, files, order, requires, namespace, after, max }
      const found = await readCandidates(this.#connection, wanted)
      const current = await withoutSuperseded(this.#connection, this.#listed, found)
      this.rows.push(...current.slice(0, this.#wanted))
      const last = found.at(-1)
      if (found.length < max || last === undefined) return
      after = {
        key: last.key,
        uid: last.uid,
        seenMs: order === 'key' ? undefined : last.lastSeenMs,
      }
      max = Math.min(CANDIDATES_MAX, 2 * max)
    }
  }
}

type ListPart = Pick<CandidateQuery, 'after' | 'seen' | 'namespaces'>

interface NamespaceCount {
  readonly namespace: string
  readonly count: number
}

function isBehind({ file }: InputFile, afterMs: number | undefined, isNewest: boolean): boolean {
  if (afterMs === undefined) return true
  return isNewest ? file.seen[0] <= afterMs : file.seen[1] >= afterMs
}

/** When the days of the files begin, in order. */
function dayStarts(files: readonly InputFile[]): number[] {
  return [...new Set(files.map(({ date }) => Date.parse(date)))].sort((one, other) => one - other)
}

/** Twice as many days as before, unless these would probably take longer than there is time. */
function nextSize(
  size: number,
  days: number,
  { spentMs, budgetMs }: { readonly spentMs: number; readonly budgetMs: number },
): number {
  const affordable = Math.floor((budgetMs - spentMs) / (spentMs / days))
  return Math.max(1, Math.min(2 * size, affordable))
}
