import type { JSX } from 'preact'
import type { FilterName } from '../../model/query.ts'
import { exactFilter } from '../../model/selector.ts'
import { isolated } from '../../model/visible.ts'
import { usePage } from '../page.ts'
import { PlainText } from '../plain-text.tsx'

/** A value of an event. Pressing it filters by that value. */
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
      title={`Show only this ${filter}: ${isolated(value)}`}
      onClick={() => change({ [filter]: exactFilter(value) })}
    >
      <PlainText text={value} />
    </button>
  )
}
