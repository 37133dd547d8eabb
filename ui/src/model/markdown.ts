/**
 * Formats events as a Markdown table for an incident report. Writers of events must not be able to
 * inject anything into the report: all their texts are code spans, in which neither HTML nor links
 * nor mentions are interpreted, and no cell contains a bar.
 */
import { type EventRow, objectPath } from './event-row.ts'
import { utcTime } from './times.ts'
import { visible } from './visible.ts'

/** Longer reports contain only the newest events, and say so. */
export const MARKDOWN_ROWS_MAX = 500

export interface Report {
  /** Describes what the events have in common. */
  readonly subject: string
  /** In the order of the view, the newest last. */
  readonly rows: readonly EventRow[]
  /** Whether there are more events than these. */
  readonly hasMore: boolean
}

export function markdownReport({ subject, rows, hasMore }: Report): string {
  const shown = rows.slice(-MARKDOWN_ROWS_MAX)
  const isCut = hasMore || shown.length < rows.length
  const lines = [
    `Events: ${codeSpan(subject)}${isCut ? ` (the newest ${shown.length} of them)` : ''}`,
    '',
    '| First seen (UTC) | Last seen (UTC) | Type | Reason | Object | Times | Note | From |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...shown.map((row) => `| ${cellsOf(row).join(' | ')} |`),
  ]
  return `${lines.join('\n')}\n`
}

function cellsOf(row: EventRow): readonly string[] {
  const where = row.cluster === '' ? '' : `${row.cluster}: `
  return [
    ...[row.firstMs, row.lastMs].map((ms) => utcTime(ms).replace('T', ' ').replace('Z', '')),
    codeSpan(row.type),
    codeSpan(row.reason),
    codeSpan(`${where}${objectPath(row.regarding)}`),
    String(row.count),
    codeSpan(row.note),
    codeSpan(row.controller),
  ]
}

/** Text as a code span; empty for no text. A bar is an entity outside the span. */
export function codeSpan(text: string): string {
  const line = visible(text)
    .replaceAll(/[\n\t]/g, ' ')
    .trim()
  return line.split('|').map(fenced).join('&#124;')
}

/** Encloses the text in more backticks than it contains in a row. */
function fenced(text: string): string {
  if (text.trim() === '') return text
  const runs = text.match(/`+/g) ?? []
  const fence = '`'.repeat(1 + Math.max(0, ...runs.map((run) => run.length)))
  const isPadded = text.startsWith('`') || text.endsWith('`') || /^ .* $/.test(text)
  return isPadded ? `${fence} ${text} ${fence}` : `${fence}${text}${fence}`
}
