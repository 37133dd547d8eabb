import type { JSX } from 'preact'
import { useErrorBoundary } from 'preact/hooks'
import { asApiError } from '../api/api-error.ts'
import { ErrorPanel } from '../parts/panels.tsx'
import { PlainText } from '../parts/plain-text.tsx'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'
import { useSession } from './use-session.ts'

export function App(): JSX.Element {
  const [failure] = useErrorBoundary()
  const { session, retry, signIn, signOut, moved } = useSession()
  if (failure !== undefined) {
    return <Stopped title="This page failed" message={asApiError(failure).message} />
  }
  switch (session.state) {
    case 'starting':
      return (
        <p class="starting" role="status">
          Connecting…
        </p>
      )
    case 'failed':
      return (
        <main class="sign-in">
          <h1>Events</h1>
          <ErrorPanel error={session.error} onRetry={retry} isBusy={session.isRetrying} />
        </main>
      )
    case 'signed-out':
      return <SignIn message={session.message} signIn={signIn} />
    case 'ended':
      return (
        <Stopped
          title="Your session has ended"
          message="The server no longer accepts what your browser, or a proxy in between, sends it."
        />
      )
    case 'signed-in':
      return <Shell {...session} signOut={signOut} moved={moved} />
  }
}

/** Shown when the only way out is to reload the page. */
function Stopped({
  title,
  message,
}: {
  readonly title: string
  readonly message: string
}): JSX.Element {
  return (
    <main class="sign-in">
      <h1>{title}</h1>
      <p class="sign-in-message" role="alert">
        <PlainText text={message} />
      </p>
      <button type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </main>
  )
}
