import type { JSX } from 'preact'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'
import { useSession } from './use-session.ts'

export function App(): JSX.Element {
  const { session, signIn, signOut } = useSession()
  switch (session.state) {
    case 'starting':
      return (
        <p class="starting" role="status">
          Connecting…
        </p>
      )
    case 'signed-out':
      return <SignIn message={session.message} signIn={signIn} />
    case 'signed-in':
      return <Shell {...session} signOut={signOut} />
  }
}
