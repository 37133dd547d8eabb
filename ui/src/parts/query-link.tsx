import type { ComponentChildren, JSX } from 'preact'
import { type Query, writeQuery } from '../model/query.ts'
import { usePage } from './page.ts'

export interface QueryLinkProps {
  /** The change that the link makes to the query. */
  readonly to: Partial<Query>
  readonly class?: string | undefined
  readonly title?: string | undefined
  readonly tabIndex?: number | undefined
  readonly isCurrent?: boolean
  readonly children: ComponentChildren
}

/** A link to another state of the page, which can be opened in a new tab or copied. */
export function QueryLink({ to, isCurrent, children, ...others }: QueryLinkProps): JSX.Element {
  const { query, change } = usePage()
  return (
    <a
      {...others}
      href={writeQuery({ ...query, ...to }) || '?'}
      aria-current={isCurrent === true ? 'page' : undefined}
      onClick={(event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return
        event.preventDefault()
        change(to)
      }}
    >
      {children}
    </a>
  )
}
