/** The filters and the time range, shared by all views of events. */
import '../../styles/filters.css'
import type { JSX } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import { FILTERS, NO_FILTERS } from '../../model/query.ts'
import { localTime } from '../../model/times.ts'
import { Moment } from '../../parts/event-time.tsx'
import { usePage } from '../../parts/page.ts'
import { useShortcut } from '../../parts/shortcuts.ts'
import { ClusterSelect } from './cluster-select.tsx'
import { FilterInput } from './filter-input.tsx'
import { RangePicker } from './range-picker.tsx'
import { Suggestions } from './suggestions.ts'

export function FilterBar(): JSX.Element {
  const { query, change, client } = usePage()
  const suggestions = useMemo(() => new Suggestions(client), [client])
  const [isOpen, setIsOpen] = useState(false)
  const text = useRef<HTMLInputElement>(null)
  const active = FILTERS.filter((name) => query[name] !== '').length
  const focusText = (): void => {
    setIsOpen(true)
    // On narrow screens the input is shown first.
    requestAnimationFrame(() => text.current?.select())
  }
  useShortcut({ keys: ['/'], title: 'Search in notes and reasons', run: focusText })
  // The live view has no time range.
  const hasRange = query.view !== 'tail'
  return (
    <search class="filters">
      {hasRange && <RangePicker />}
      <WarningsToggle />
      {hasRange && <RefreshButton />}
      <button
        type="button"
        class="filters-toggle"
        aria-expanded={isOpen}
        aria-controls="filters"
        onClick={() => setIsOpen(!isOpen)}
      >
        Filters{active === 0 ? '' : ` (${active})`}
      </button>
      <div id="filters" class={isOpen ? 'filter-inputs filter-inputs-open' : 'filter-inputs'}>
        <ClusterSelect />
        <FilterInput filter="namespace" label="Namespace" suggestions={suggestions} />
        <FilterInput filter="kind" label="Kind" suggestions={suggestions} />
        <FilterInput filter="object" label="Object name" />
        <FilterInput filter="workload" label="Workload" suggestions={suggestions} />
        <FilterInput filter="node" label="Node" />
        <FilterInput filter="reason" label="Reason" suggestions={suggestions} />
        <FilterInput filter="controller" label="Controller" suggestions={suggestions} />
        {/* Nobody types an id: it comes from an incident or a link. */}
        {query.pattern !== '' && <FilterInput filter="pattern" label="Pattern" />}
        <FilterInput
          filter="text"
          label="Text"
          placeholder="Text in notes"
          isLive
          inputRef={text}
        />
        {active > 0 && (
          <button type="button" onClick={() => change(NO_FILTERS)}>
            Clear all
          </button>
        )}
      </div>
    </search>
  )
}

function WarningsToggle(): JSX.Element {
  const { query, change, warnings } = usePage()
  const isOn = query.type === 'Warning'
  const toggle = (): void => change({ type: isOn ? '' : 'Warning' })
  useShortcut({ keys: ['w'], title: 'Show only Warnings, or all', run: toggle })
  return (
    <button type="button" aria-pressed={isOn} onClick={toggle} title="Show only Warnings">
      Warnings{warnings === undefined ? '' : ` (${warnings.toLocaleString('en')})`}
    </button>
  )
}

function RefreshButton(): JSX.Element {
  const { nowMs, refresh } = usePage()
  useShortcut({ keys: ['r'], title: 'Refresh', run: refresh })
  return (
    <span class="refresh">
      <button type="button" onClick={refresh}>
        Refresh
      </button>
      <span class="muted">
        as of <Moment ms={nowMs}>{localTime(nowMs).slice(11)}</Moment>
      </span>
    </span>
  )
}
