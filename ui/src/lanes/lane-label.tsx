import type { JSX } from 'preact'
import { writeAbout } from '../model/about.ts'
import { objectPath } from '../model/event-row.ts'
import type { Query } from '../model/query.ts'
import { isolated } from '../model/visible.ts'
import { PlainText } from '../parts/plain-text.tsx'
import { QueryLink } from '../parts/query-link.tsx'
import type { BoardSize } from './board-size.ts'
import { type Lane, laneSummary } from './lanes.ts'

export interface LaneLabelProps {
  readonly lane: Lane
  readonly index: number
  /** Total number of lanes. */
  readonly count: number
  readonly size: BoardSize
  /** Tab reaches only the active label; the arrow keys move to the others. */
  readonly isActive: boolean
}

/** The lane's name, which links to its object. */
export function LaneLabel({ lane, index, count, size, isActive }: LaneLabelProps): JSX.Element {
  const { kind, namespace, name } = lane.object
  const path = objectPath(lane.object)
  const where = lane.cluster === '' ? '' : `${lane.cluster}: `
  return (
    <li
      class="lane"
      aria-setsize={count}
      aria-posinset={index + 1}
      style={{ top: `${index * size.rowHeight}px`, height: `${size.rowHeight}px` }}
    >
      <span
        class="lane-label"
        style={{ width: size.labelWidth === 0 ? '100%' : `${size.labelWidth}px` }}
        data-lane={index}
      >
        <QueryLink
          to={objectQuery(lane)}
          tabIndex={isActive ? 0 : -1}
          title={isolated(`${where}${path}`)}
        >
          <span class="lane-kind">
            <PlainText text={`${where}${kind}`} />
          </span>
          {namespace !== '' && (
            <span class="lane-namespace">
              <PlainText text={namespace} />/
            </span>
          )}
          <span class="lane-name">
            <PlainText text={name} />
          </span>
          <span class="hidden">
            : <PlainText text={laneSummary(lane)} />
          </span>
        </QueryLink>
      </span>
    </li>
  )
}

export function objectQuery({ object, cluster }: Lane): Partial<Query> {
  const about = writeAbout({ ...object, uid: '' })
  return { view: 'object', about, ...(cluster === '' ? {} : { cluster }) }
}
