import type { JSX } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { knownIn } from '../api/paths.ts'
import { readQuery } from '../model/query.ts'
import { PlainText } from '../parts/plain-text.tsx'
import type { SessionControl } from './use-session.ts'

export interface SignInProps {
  /** Why the user has to sign in; may be empty. */
  readonly message: string
  readonly signIn: SessionControl['signIn']
}

export function SignIn({ message, signIn }: SignInProps): JSX.Element {
  const token = useRef<HTMLInputElement>(null)
  const kept = useRef<HTMLInputElement>(null)
  const [isBusy, setIsBusy] = useState(false)
  const cluster = knownIn(readQuery(location.search).cluster)
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const value = token.current?.value.trim() ?? ''
    if (value === '') return
    setIsBusy(true)
    await signIn(value, kept.current?.checked === true)
    setIsBusy(false)
  }
  return (
    <main class="sign-in">
      <h1>Sign in</h1>
      {message !== '' && (
        <p class="sign-in-message" role="alert">
          <PlainText text={message} />
        </p>
      )}
      <form onSubmit={submit}>
        <label for="token">
          Bearer token
          {cluster !== '' && (
            <>
              {' for cluster '}
              <PlainText text={cluster} />
            </>
          )}
        </label>
        <input
          id="token"
          ref={token}
          type="password"
          autoComplete="off"
          spellcheck={false}
          required
        />
        <label class="sign-in-kept">
          <input ref={kept} type="checkbox" /> Keep it in this tab, also over a reload
        </label>
        <button type="submit" disabled={isBusy}>
          {isBusy ? 'Checking…' : 'Sign in'}
        </button>
      </form>
      <p class="sign-in-hint">
        Use the token that kubectl uses, for instance of a service account:{' '}
        <code>kubectl create token NAME</code>. The page sends it to this server only, and keeps it
        in memory. A token for one cluster is not sent with requests for another. With a client
        certificate, or through <code>kubectl proxy</code>, there is nothing to paste.
      </p>
    </main>
  )
}
