import type { JSX } from 'preact'
import { type ObjectName, objectPath } from '../../model/event-row.ts'
import type { Query } from '../../model/query.ts'
import { isolated } from '../../model/visible.ts'
import { PlainText } from '../plain-text.tsx'
import { QueryLink } from '../query-link.tsx'

export interface ObjectLinkProps {
  readonly object: ObjectName
  /** The object's cluster, if several are shown. */
  readonly cluster: string
  readonly tabIndex?: number | undefined
  /** Whether to include the namespace: `Pod/shop/web-0`. */
  readonly isFull?: boolean
}

/** `Pod/web-0`: links to everything that mentions the object. */
export function ObjectLink({
  object,
  cluster,
  tabIndex,
  isFull = false,
}: ObjectLinkProps): JSX.Element {
  const { kind, name } = object
  const path = isFull ? objectPath(object) : `${kind}/${name}`
  const text = <PlainText text={path} />
  if (kind === '' || name === '') return <span class="object">{text}</span>
  const to: Partial<Query> = {
    view: 'object',
    about: objectPath(object),
    ...(cluster === '' ? {} : { cluster }),
  }
  return (
    <QueryLink class="object" to={to} tabIndex={tabIndex} title={`All about ${isolated(path)}`}>
      {text}
    </QueryLink>
  )
}
