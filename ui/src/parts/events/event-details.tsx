/** All fields of an event, below its line in a list. */
import type { ComponentChildren, JSX } from 'preact'
import { type EventRow, type ObjectName, repeatsOf } from '../../model/event-row.ts'
import { localTime, utcTime } from '../../model/times.ts'
import { PlainText } from '../plain-text.tsx'
import { FilterButton } from './filter-button.tsx'
import { ObjectLink } from './object-link.tsx'

/** An event may have very many labels; the rest are counted. */
const LABELS_SHOWN = 50

export function EventDetails({
  row,
  id,
}: {
  readonly row: EventRow
  readonly id: string
}): JSX.Element {
  return (
    <div class="event-details" id={id}>
      <p class="event-full-note">
        <PlainText text={row.note} />
      </p>
      <dl>
        <Moment name="Last seen" ms={row.lastMs} />
        <Moment name="First seen" ms={row.firstMs} />
        {row.count > 1 && <Entry name="Times">{repeatsOf(row)}</Entry>}
        <ObjectEntry name="Object" object={row.regarding} cluster={row.cluster} />
        {row.related !== undefined && (
          <ObjectEntry name="Related" object={row.related} cluster={row.cluster} />
        )}
        <ValueEntry name="Action" value={row.action} />
        {row.controller !== '' && (
          <Entry name="Controller">
            <FilterButton filter="controller" value={row.controller} />
          </Entry>
        )}
        <ValueEntry name="Instance" value={row.instance} />
        {row.namespace !== '' && (
          <Entry name="Namespace">
            <FilterButton filter="namespace" value={row.namespace} />
          </Entry>
        )}
        {row.cluster !== '' && (
          <Entry name="Cluster">
            <FilterButton filter="cluster" value={row.cluster} />
          </Entry>
        )}
        <LabelsEntry labels={row.labels} />
        <ValueEntry name="Event" value={row.name} />
        <ValueEntry name="UID" value={row.uid} />
        <ValueEntry name="Version" value={row.resourceVersion} />
      </dl>
    </div>
  )
}

function Entry({
  name,
  children,
}: {
  readonly name: string
  readonly children: ComponentChildren
}): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  )
}

/** Renders nothing for an empty value. */
function ValueEntry({
  name,
  value,
}: {
  readonly name: string
  readonly value: string
}): JSX.Element | null {
  if (value === '') return null
  return (
    <Entry name={name}>
      <PlainText text={value} />
    </Entry>
  )
}

function Moment({ name, ms }: { readonly name: string; readonly ms: number }): JSX.Element {
  return (
    <Entry name={name}>
      <time dateTime={utcTime(ms)}>
        {localTime(ms)} <span class="muted">local, {utcTime(ms)}</span>
      </time>
    </Entry>
  )
}

function ObjectEntry({
  name,
  object,
  cluster,
}: {
  readonly name: string
  readonly object: ObjectName
  readonly cluster: string
}): JSX.Element {
  return (
    <Entry name={name}>
      <ObjectLink object={object} cluster={cluster} />
      {object.uid !== '' && (
        <span class="muted">
          {' '}
          <PlainText text={object.uid} />
        </span>
      )}
    </Entry>
  )
}

function LabelsEntry({
  labels,
}: {
  readonly labels: Readonly<Record<string, string>>
}): JSX.Element | null {
  const all = Object.entries(labels)
  if (all.length === 0) return null
  const hidden = all.length - LABELS_SHOWN
  return (
    <Entry name="Labels">
      {all.slice(0, LABELS_SHOWN).map(([name, value]) => (
        <span key={name} class="label">
          <PlainText text={`${name}=${value}`} />
        </span>
      ))}
      {hidden > 0 && <span class="muted">and {hidden} more</span>}
    </Entry>
  )
}
