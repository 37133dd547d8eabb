import type { JSX } from 'preact'
import type { FilterName } from '../../model/query.ts'
import { usePage } from '../page.ts'

const NAMES: Readonly<Partial<Record<FilterName, string>>> = {
  cluster: 'cluster',
  namespace: 'namespace',
  kind: 'kind',
  reason: 'reason',
  controller: 'controller',
}

/** A value of an event. Pressing it shows only events that have it. */
export function FilterButton({
  filter,
  value,
  tabIndex,
}: {
  readonly filter: FilterName
  readonly value: string
  readonly tabIndex?: number | undefined
}): JSX.Element {
  const { change } = usePage()
  return (
    <button
      type="button"
      class="value"
      tabIndex={tabIndex}
      title={`Show only this ${NAMES[filter] ?? filter}: ${value}`}
      onClick={() => change({ [filter]: value })}
    >
      <bdi>{value}</bdi>
    </button>
  )
}
