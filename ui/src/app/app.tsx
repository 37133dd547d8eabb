import type { JSX } from 'preact'
import { ErrorPanel } from '../parts/panels.tsx'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'
import { useSession } from './use-session.ts'

export function App(): JSX.Element {
  const { session, retry, signIn, signOut } = useSession()
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
          <ErrorPanel error={session.error} onRetry={retry} />
        </main>
      )
    case 'signed-out':
      return <SignIn message={session.message} signIn={signIn} />
    case 'signed-in':
      return <Shell {...session} signOut={signOut} />
  }
}
