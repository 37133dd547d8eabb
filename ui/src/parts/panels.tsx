/** What is shown instead of data: nothing found, an error, a permission that is missing. */
import type { ComponentChildren, JSX } from 'preact'
import { useContext, useEffect, useRef } from 'preact/hooks'
import type { ApiError } from '../api/api-error.ts'
import { PageContext } from './page.ts'
import { PlainText } from './plain-text.tsx'

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

/**
 * Says what failed and what the user can do about it. What may work later is tried again by itself,
 * as soon as the server asks for it and while somebody looks.
 */
export function ErrorPanel({
  error,
  onRetry,
}: {
  readonly error: ApiError
  readonly onRetry?: (() => void) | undefined
}): JSX.Element {
  const isForbidden = error.code === 403
  // There is no page yet when signing in fails.
  const namespace = useContext(PageContext)?.query.namespace ?? ''
  const retrySeconds = onRetry === undefined ? undefined : retrySecondsOf(error)
  useRetry(error, retrySeconds, onRetry)
  return (
    <div class={isForbidden ? 'panel' : 'panel panel-problem'} role="alert">
      <strong>{titleOf(error)}</strong>
      <div class="panel-message">
        <PlainText text={error.message} />
      </div>
      {isForbidden && <div>{adviceOn(namespace)}</div>}
      {retrySeconds !== undefined && <div>The page tries again after {retrySeconds} s.</div>}
      {onRetry !== undefined && !isForbidden && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  )
}

/** When the server does not say. */
const RETRY_SECONDS = 5
const RETRY_SECONDS_MAX = 120

/** Undefined for what would fail again. */
function retrySecondsOf({ code, reason, retryAfterSeconds }: ApiError): number | undefined {
  const isPassing = [0, 408, 429, 500, 502, 503, 504].includes(code) && reason !== 'PageError'
  if (!isPassing) return undefined
  return Math.min(RETRY_SECONDS_MAX, Math.max(1, retryAfterSeconds ?? RETRY_SECONDS))
}

function useRetry(
  error: ApiError,
  seconds: number | undefined,
  onRetry: (() => void) | undefined,
): void {
  const retry = useRef(onRetry)
  retry.current = onRetry
  useEffect(() => {
    if (seconds === undefined) return
    // Once for each failure: an answer is waited for, however long that takes.
    const run = (): void => {
      if (document.visibilityState !== 'visible') return
      document.removeEventListener('visibilitychange', run)
      retry.current?.()
    }
    const timer = setTimeout(() => {
      document.addEventListener('visibilitychange', run)
      run()
    }, seconds * 1_000)
    return () => {
      clearTimeout(timer)
      document.removeEventListener('visibilitychange', run)
    }
  }, [error, seconds])
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

function adviceOn(namespace: string): string {
  if (namespace === '') {
    return 'This asks for the events of all namespaces. Choose a namespace that you may read, or ask for the role "view".'
  }
  return 'Choose another namespace or cluster that you may read, or ask for the role "view" in this one.'
}
