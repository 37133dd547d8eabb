/** Copies what a view shows as a command that prints it, or as a report. */
import '../styles/copy.css'
import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { type EventQuery, listUrl, selectorOf } from '../api/events.ts'
import { curlCommand, kubectlCommand } from '../model/commands.ts'
import type { EventRow } from '../model/event-row.ts'
import { markdownReport } from '../model/markdown.ts'
import { FILTERS, type Query } from '../model/query.ts'
import type { Span } from '../model/range.ts'
import { usePage } from './page.ts'

export interface CopyMenuProps {
  /** The requests for the events shown; several if one is not enough. */
  readonly queries: readonly EventQuery[]
  /** Title of the report. */
  readonly subject: string
  /** The events of the report, the newest last. */
  readonly rows: readonly EventRow[]
  readonly hasMore: boolean
}

/** The server's maximum page length. A million events are no use in a terminal. */
const CURL_LIMIT = 500

export function CopyMenu({ queries, subject, rows, hasMore }: CopyMenuProps): JSX.Element {
  const { client, announce } = usePage()
  const [refused, setRefused] = useState<string>()
  const kubectl = (): string =>
    queries
      .map((query) => kubectlCommand({ ...query.filters, selector: selectorOf(query) }))
      .join('\n')
  const curl = (): string =>
    queries.map((query) => curlCommand(listUrl(client, query, CURL_LIMIT))).join('\n')
  const markdown = (): string => markdownReport({ subject, rows, hasMore })
  const copy = async (name: string, text: string): Promise<boolean> => {
    try {
      await navigator.clipboard.writeText(text)
      announce(`Copied as ${name}.`)
      return true
    } catch {
      // No permission, or a page without TLS, where there is no clipboard at all.
      setRefused(text)
      return false
    }
  }
  return (
    <fieldset class="copy">
      <legend>Copy as</legend>
      <CopyButton name="kubectl" onCopy={() => copy('kubectl', kubectl())} />
      <CopyButton name="curl" onCopy={() => copy('curl', curl())} />
      <CopyButton name="Markdown" onCopy={() => copy('Markdown', markdown())} />
      {refused !== undefined && <CopyDialog text={refused} onClose={() => setRefused(undefined)} />}
    </fieldset>
  )
}

/** Describes the filters and the range in one line. */
function subjectOf(query: Query, { fromMs, toMs }: Span): string {
  const filters = FILTERS.filter((name) => query[name] !== '').map(
    (name) => `${name}=${query[name]}`,
  )
  const times = [fromMs, toMs].map((ms) => new Date(ms).toISOString())
  return [...filters, times.join(' to ')].join(', ')
}

/** Copies the events that match the page's filters and a span. `rows` are newest first. */
export function FilterCopyMenu({
  span,
  rows,
  hasMore,
}: Pick<CopyMenuProps, 'rows' | 'hasMore'> & { readonly span: Span }): JSX.Element {
  const { query } = usePage()
  return (
    <CopyMenu
      queries={[{ filters: query, span, order: 'newest' }]}
      subject={subjectOf(query, span)}
      rows={rows.toReversed()}
      hasMore={hasMore}
    />
  )
}

/** How long the button confirms the copy. */
const DONE_MS = 1_500

function CopyButton({
  name,
  onCopy,
}: {
  readonly name: string
  /** Resolves to whether the clipboard has the text. */
  readonly onCopy: () => Promise<boolean>
}): JSX.Element {
  const [isDone, setIsDone] = useState(false)
  useEffect(() => {
    if (!isDone) return undefined
    const timer = setTimeout(() => setIsDone(false), DONE_MS)
    return () => clearTimeout(timer)
  }, [isDone])
  return (
    <button type="button" aria-label={`Copy as ${name}`} onClick={() => onCopy().then(setIsDone)}>
      {name}
      {isDone && ' ✓'}
    </button>
  )
}

/** Shows the text selected, so that the user can copy it. */
function CopyDialog({
  text,
  onClose,
}: {
  readonly text: string
  readonly onClose: () => void
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
    area.current?.select()
  }, [])
  return (
    <dialog ref={dialog} class="copy-dialog" aria-labelledby="copy-title" onClose={onClose}>
      <h2 id="copy-title">Copy this text</h2>
      <p>
        The browser does not allow this page to use the clipboard. The text is selected: copy it
        manually.
      </p>
      <textarea ref={area} aria-label="Text to copy" readOnly rows={10} value={text} />
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  )
}
