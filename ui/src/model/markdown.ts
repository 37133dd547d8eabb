/**
 * Events as a table of Markdown, for the report about an incident. Whoever writes events does not
 * decide what else is in the report: all their texts are code spans, where nothing is interpreted,
 * neither HTML nor links nor names of people. A table has no bar but those between its cells.
 */
import { type EventRow, objectPath, repeatsOf } from './event-row.ts'
import { utcTime } from './times.ts'
import { visible } from './visible.ts'

/** Longer reports have the newest events only, and say so. */
export const MARKDOWN_ROWS_MAX = 500

export interface Report {
  /** What the events have in common. */
  readonly subject: string
  /** The oldest first. */
  readonly rows: readonly EventRow[]
  /** Whether there are more than these. */
  readonly hasMore: boolean
}

export function markdownReport({ subject, rows, hasMore }: Report): string {
  const shown = rows.slice(-MARKDOWN_ROWS_MAX)
  const isCut = hasMore || shown.length < rows.length
  const lines = [
    `Events: ${codeSpan(subject)}${isCut ? ` (the newest ${shown.length} of them)` : ''}`,
    '',
    '| Last seen (UTC) | Type | Reason | Object | Times | Note | From |',
    '| --- | --- | --- | --- | --- | --- | --- |',
    ...shown.map((row) => `| ${cellsOf(row).join(' | ')} |`),
  ]
  return `${lines.join('\n')}\n`
}

function cellsOf(row: EventRow): readonly string[] {
  const { count, firstMs, lastMs } = row
  const where = row.cluster === '' ? '' : `${row.cluster}: `
  return [
    utcTime(lastMs).replace('T', ' ').replace('Z', ''),
    codeSpan(row.type),
    codeSpan(row.reason),
    codeSpan(`${where}${objectPath(row.regarding)}`),
    repeatsOf({ count, firstMs, lastMs }) || '1',
    codeSpan(row.note),
    codeSpan(row.controller),
  ]
}

/** Text that is shown as it is; empty for no text. A bar is outside of the code, where it has a name. */
export function codeSpan(text: string): string {
  const line = visible(text)
    .replaceAll(/[\n\t]/g, ' ')
    .trim()
  return line.split('|').map(fenced).join('&#124;')
}

/** Between more backticks than there are in the text. */
function fenced(text: string): string {
  if (text.trim() === '') return text
  const runs = text.match(/`+/g) ?? []
  const fence = '`'.repeat(1 + Math.max(0, ...runs.map((run) => run.length)))
  const isPadded = text.startsWith('`') || text.endsWith('`') || /^ .* $/.test(text)
  return isPadded ? `${fence} ${text} ${fence}` : `${fence}${text}${fence}`
}
