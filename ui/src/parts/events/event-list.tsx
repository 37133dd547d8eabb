/**
 * Events, one line each. One row is active: Tab reaches only its controls, and j, k and the arrow
 * keys move to other rows, so that a long list does not trap the keyboard.
 */
import '../../styles/event-list.css'
import type { JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { EventRow } from '../../model/event-row.ts'
import { age } from '../../model/times.ts'
import { usePage } from '../page.ts'
import { useShortcut } from '../shortcuts.ts'
import { EventItem, type ItemActions } from './event-item.tsx'
import { useNow } from './use-now.ts'

export interface EventListProps {
  readonly rows: readonly EventRow[]
  /** The list's name for screen readers. */
  readonly label: string
  readonly isBusy?: boolean
  /** Called with whether any row is open. */
  readonly onOpen?: (isAnyOpen: boolean) => void
  /** Formats when the event was seen; by default, how long ago. */
  readonly seenText?: (row: EventRow) => string
  /** By default the row's key. Rows with the same key successively reuse the same components. */
  readonly keyOf?: (row: EventRow) => string | number
  /** Whether to highlight a row. */
  readonly isMarked?: (row: EventRow) => boolean
  /** Rendered between this row and the one above it. */
  readonly noticeAbove?: (row: EventRow) => JSX.Element | undefined
}

export function EventList(props: EventListProps): JSX.Element {
  const { rows, label, isBusy = false, onOpen } = props
  const { query } = usePage()
  const nowMs = useNow()
  const id = useId()
  const [activeKey, setActiveKey] = useState('')
  const [openKeys, setOpenKeys] = useState<ReadonlySet<string>>(new Set())
  const isAnyOpen = rows.some(({ key }) => openKeys.has(key))
  useEffect(() => onOpen?.(isAnyOpen), [isAnyOpen])
  const toggle = (key: string): void =>
    setOpenKeys((before) => (before.has(key) ? without(before, key) : new Set([...before, key])))
  const activeIndex = Math.max(
    0,
    rows.findIndex(({ key }) => key === activeKey),
  )
  const { list, move } = useRowKeys(activeIndex, () => toggle(rows[activeIndex]?.key ?? ''))
  // Stable across renders, so that unchanged rows are not rendered again.
  const { current: actions } = useRef<ItemActions>({ focus: setActiveKey, toggle, move })
  const hasCluster = query.cluster === '*'
  const hasNamespace = query.namespace === ''
  return (
    <ol
      ref={list}
      class={`events${hasCluster ? ' events-clusters' : ''}${hasNamespace ? ' events-namespaces' : ''}`}
      aria-label={label}
      aria-busy={isBusy}
    >
      {rows.map((row, index) => (
        <EventItem
          key={props.keyOf?.(row) ?? row.key}
          row={row}
          id={id}
          seen={props.seenText?.(row) ?? age(row.lastMs, nowMs)}
          isOpen={openKeys.has(row.key)}
          isActive={index === activeIndex}
          hasCluster={hasCluster}
          hasNamespace={hasNamespace}
          isMarked={props.isMarked?.(row) === true}
          notice={props.noticeAbove?.(row)}
          actions={actions}
        />
      ))}
    </ol>
  )
}

/** Keyboard navigation between rows, for the list with the returned ref. */
function useRowKeys(
  activeIndex: number,
  onOpen: () => void,
): {
  readonly list: { readonly current: HTMLOListElement | null }
  readonly move: (step: number) => void
} {
  const list = useRef<HTMLOListElement>(null)
  const active = useRef(activeIndex)
  active.current = activeIndex
  const hasFocus = (): boolean => list.current?.contains(document.activeElement) === true
  const move = (step: number): void => {
    // The first key enters the list where it was left.
    const index = active.current + (hasFocus() ? step : 0)
    const note = list.current?.querySelectorAll<HTMLElement>('.event-note')[index]
    note?.focus()
    note?.scrollIntoView({ block: 'nearest' })
  }
  useShortcut({ keys: ['j'], title: 'Next event', run: () => move(1) })
  useShortcut({ keys: ['k'], title: 'Previous event', run: () => move(-1) })
  useShortcut({
    keys: ['o'],
    title: 'Open or close the event (also Enter)',
    run: () => {
      if (hasFocus()) onOpen()
    },
  })
  return { list, move }
}

function without(keys: ReadonlySet<string>, removed: string): ReadonlySet<string> {
  return new Set([...keys].filter((key) => key !== removed))
}
