/**
 * Events, one line each. A row is active: the tabulator key reaches only its controls, and the keys
 * j, k and the arrows move to other rows, so that a long list is no trap for the keyboard.
 */
import '../../styles/event-list.css'
import type { JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { EventRow } from '../../model/event-row.ts'
import { usePage } from '../page.ts'
import { useShortcut } from '../shortcuts.ts'
import { EventItem } from './event-item.tsx'
import { useNow } from './use-now.ts'

export interface EventListProps {
  readonly rows: readonly EventRow[]
  /** Names the list for screen readers. */
  readonly label: string
  readonly isBusy?: boolean
  /** Told whether any row is open. */
  readonly onOpen?: (isAnyOpen: boolean) => void
  /** For views that know the time better than to a quarter of a minute. */
  readonly nowMs?: number
  /** Whether to point out a row calmly. */
  readonly isMarked?: (row: EventRow) => boolean
  /** Something between this row and the one above it. */
  readonly noticeAbove?: (row: EventRow) => JSX.Element | undefined
}

export function EventList(props: EventListProps): JSX.Element {
  const { rows, label, isBusy = false, onOpen } = props
  const { query } = usePage()
  const tickedMs = useNow()
  const nowMs = props.nowMs ?? tickedMs
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
          key={row.key}
          row={row}
          nowMs={nowMs}
          id={`${id}-${index}`}
          isOpen={openKeys.has(row.key)}
          isActive={index === activeIndex}
          hasCluster={hasCluster}
          hasNamespace={hasNamespace}
          onFocus={() => setActiveKey(row.key)}
          onToggle={() => toggle(row.key)}
          onMove={move}
          isMarked={props.isMarked?.(row) === true}
          notice={props.noticeAbove?.(row)}
        />
      ))}
    </ol>
  )
}

/** The keys that move between rows, for the list that gets the returned reference. */
function useRowKeys(
  activeIndex: number,
  onOpen: () => void,
): {
  readonly list: { readonly current: HTMLOListElement | null }
  readonly move: (step: number) => void
} {
  const list = useRef<HTMLOListElement>(null)
  const hasFocus = (): boolean => list.current?.contains(document.activeElement) === true
  const move = (step: number): void => {
    // The first key enters the list where it was left.
    const index = hasFocus() ? activeIndex + step : activeIndex
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
