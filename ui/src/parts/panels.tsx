/** What is shown instead of data: nothing found, an error, a permission that is missing. */
import type { ComponentChildren, JSX } from 'preact'
import type { ApiError } from '../api/api-error.ts'

export function EmptyPanel({
  title,
  children,
}: {
  readonly title: string
  readonly children?: ComponentChildren
}): JSX.Element {
  return (
    <div class="panel" role="status">
      <strong>{title}</strong>
      <div>{children}</div>
    </div>
  )
}

/** Says what failed and what the user can do about it. */
export function ErrorPanel({
  error,
  onRetry,
}: {
  readonly error: ApiError
  readonly onRetry?: (() => void) | undefined
}): JSX.Element {
  const isForbidden = error.code === 403
  return (
    <div class={isForbidden ? 'panel' : 'panel panel-problem'} role="alert">
      <strong>{titleOf(error)}</strong>
      <div class="panel-message">{error.message}</div>
      <div>{adviceOn(error)}</div>
      {onRetry !== undefined && !isForbidden && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

function titleOf({ code }: ApiError): string {
  switch (code) {
    case 0:
      return 'No response'
    case 400:
      return 'The server does not understand this filter'
    case 403:
      return 'You do not have the permission for this'
    case 410:
      return 'This is no longer in the history'
    case 429:
      return 'Too many requests'
    case 503:
      return 'The server cannot respond now'
    case 504:
      return 'The server took too long'
    default:
      return `Error ${code}`
  }
}

function adviceOn({ code, retryAfterSeconds }: ApiError): string {
  if (code === 403) {
    return 'Choose a namespace or a cluster that you may read, or ask for the role "view".'
  }
  if (retryAfterSeconds !== undefined) return `Try again in ${retryAfterSeconds} s.`
  return ''
}
