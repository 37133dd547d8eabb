/**
 * Signing in. The page first tries what the browser has anyway: the code of `tidings dev`, a token
 * kept by this tab, a client certificate, or a proxy that adds credentials. If the server does not
 * know the user by these, the user pastes a token.
 */
import { useEffect, useState } from 'preact/hooks'
import { ApiError, asApiError } from '../api/api-error.ts'
import { ApiClient } from '../api/client.ts'
import { type Caller, mayI, tokenFor, whoAmI } from '../api/session.ts'
import { forgetToken, keepToken, keptToken, takeCode } from './credentials.ts'

export type Session =
  | { readonly state: 'starting' }
  /** The server did not say who the user is: it may do so later. */
  | { readonly state: 'failed'; readonly error: ApiError }
  | { readonly state: 'signed-out'; readonly message: string }
  | {
      readonly state: 'signed-in'
      readonly client: ApiClient
      readonly caller: Caller
      /** Whether there is a token to forget. */
      readonly hasToken: boolean
    }

export interface SessionControl {
  readonly session: Session
  /** Starts again after a failure. */
  readonly retry: () => void
  readonly signIn: (token: string, isKept: boolean) => Promise<void>
  readonly signOut: () => void
}

export function useSession(): SessionControl {
  const [session, setSession] = useState<Session>({ state: 'starting' })

  const leave = (message: string): void => {
    forgetToken()
    setSession({ state: 'signed-out', message })
  }
  const enter = async (token: string | undefined): Promise<void> => {
    const client = new ApiClient({
      base: baseOf(location),
      token,
      onUnauthorized: () => leave(token === undefined ? '' : NO_LONGER_ACCEPTED),
    })
    const caller = await whoAmI(client)
    if (caller.isAnonymous && !(await mayListEvents(client))) return leave('')
    setSession({ state: 'signed-in', client, caller, hasToken: token !== undefined })
  }
  const start = async (): Promise<void> => {
    setSession({ state: 'starting' })
    try {
      await enter((await tokenFromCode()) ?? keptToken())
    } catch (error) {
      if (error instanceof CodeRefused) leave(error.message)
      else if (!isUnauthorized(error)) setSession({ state: 'failed', error: asApiError(error) })
    }
  }
  useEffect(() => {
    void start()
  }, [])

  return {
    session,
    retry: () => void start(),
    signIn: async (token, isKept) => {
      try {
        await enter(token)
        if (isKept) keepToken(token)
      } catch (error) {
        leave(isUnauthorized(error) ? NOT_ACCEPTED : asApiError(error).message)
      }
    },
    signOut: () => leave(''),
  }
}

const NOT_ACCEPTED = 'The server does not accept this token.'
const NO_LONGER_ACCEPTED = 'The server no longer accepts your token.'

/** The code was used before, or is too old. */
class CodeRefused extends Error {}

/** Undefined without a code in the URL. Whoever opens the link has chosen to keep its token. */
async function tokenFromCode(): Promise<string | undefined> {
  const code = takeCode()
  if (code === undefined) return undefined
  const client = new ApiClient({ base: baseOf(location), token: undefined })
  try {
    const token = await tokenFor(client, code)
    keepToken(token)
    return token
  } catch (error) {
    throw new CodeRefused(`This link no longer signs you in: ${asApiError(error).message}`)
  }
}

/** An anonymous user who may list events need not sign in. */
async function mayListEvents(client: ApiClient): Promise<boolean> {
  const events = { verb: 'list', group: '', resource: 'events', cluster: '', namespace: '' }
  return mayI(client, events).catch(() => false)
}

/** The server's URL: that of this page without `ui/`, so that a proxy may add a prefix. */
function baseOf({ origin, pathname }: Location): string {
  const at = pathname.lastIndexOf('/ui/')
  return `${origin}${pathname.slice(0, at === -1 ? 0 : at)}/`
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof ApiError && error.code === 401
}
