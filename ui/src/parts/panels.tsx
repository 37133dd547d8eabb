/** Shown instead of data: nothing found, an error, or a missing permission. */
import type { ComponentChildren, JSX } from 'preact'
import { useContext } from 'preact/hooks'
import { type ApiError, isOfHistory } from '../api/api-error.ts'
import { isFinal } from '../model/retries.ts'
import { PageContext } from './page.ts'
import { PlainText } from './plain-text.tsx'
import { useRetry } from './use-retry.ts'

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

export interface ErrorPanelProps {
  readonly error: ApiError
  readonly onRetry?: (() => void) | undefined
  /** Only the user can retry: something else retries automatically, or nothing should. */
  readonly isManual?: boolean
  /** True while something is under way that a retry would cancel. */
  readonly isBusy?: boolean
}

/** Says what failed and what the user can do about it. Retries failures that may be temporary. */
export function ErrorPanel(props: ErrorPanelProps): JSX.Element {
  const { error, onRetry, isManual = false, isBusy = false } = props
  const isRetried = onRetry !== undefined && !isManual && isPassing(error)
  const isForbidden = error.code === 403
  // There is no page yet when signing in fails.
  const namespace = useContext(PageContext)?.query.namespace ?? ''
  const delayMs = useRetry({
    failure: error,
    retryAfterSeconds: error.retryAfterSeconds,
    isBusy,
    retry: isRetried ? onRetry : undefined,
  })
  return (
    <div class={isForbidden ? 'panel' : 'panel panel-problem'} role="alert">
      <strong>{titleOf(error)}</strong>
      <div class="panel-message">
        <PlainText text={error.message} />
      </div>
      {isForbidden && <div>{adviceOn(namespace)}</div>}
      {isRetried && <div>The page retries in {Math.ceil(delayMs / 1_000)} s.</div>}
      {onRetry !== undefined && !isForbidden && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** Whether the same request may succeed later. What takes history too long will do so again. */
function isPassing(error: ApiError): boolean {
  const { code, reason } = error
  return !isFinal(code) && reason !== 'PageError' && !(code === 504 && isOfHistory(error))
}

function titleOf({ code }: ApiError): string {
  switch (code) {
    case 0:
      return 'No response'
    case 400:
      return 'The server does not understand this filter'
    case 403:
      return 'You do not have permission for this'
    case 410:
      return "This is no longer in the server's history"
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

function adviceOn(namespace: string): string {
  if (namespace === '') {
    return 'This lists the events of all namespaces. Choose a namespace that you may read, or request the role "view".'
  }
  return 'Choose another namespace or cluster that you may read, or request the role "view" in this one.'
}
