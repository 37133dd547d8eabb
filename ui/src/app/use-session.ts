/**
 * Signing in. The page first tries what the browser has anyway: the code of `tidings dev`, a token
 * kept by this tab, a client certificate, or a proxy that adds credentials. If the server does not
 * know the user by these, the user pastes a token.
 */
import { useEffect, useState } from 'preact/hooks'
import { ApiError } from '../api/api-error.ts'
import { ApiClient } from '../api/client.ts'
import { type Caller, mayI, tokenFor, whoAmI } from '../api/session.ts'
import { forgetToken, keepToken, keptToken, takeCode } from './credentials.ts'

export type Session =
  | { readonly state: 'starting' }
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
  readonly signIn: (token: string, isKept: boolean) => Promise<void>
  readonly signOut: () => void
}

export function useSession(): SessionControl {
  const [session, setSession] = useState<Session>({ state: 'starting' })

  const leave = (message: string): void => {
    forgetToken()
    setSession({ state: 'signed-out', message })
  }
  const clientWith = (token: string | undefined): ApiClient =>
    new ApiClient({
      base: baseOf(location),
      token,
      onUnauthorized: () => leave('The server no longer accepts these credentials.'),
    })
  const enter = async (token: string | undefined): Promise<void> => {
    const client = clientWith(token)
    const caller = await whoAmI(client)
    if (caller.isAnonymous && !(await mayReadSomething(client))) return leave('')
    setSession({ state: 'signed-in', client, caller, hasToken: token !== undefined })
  }
  const start = async (): Promise<void> => {
    const token = (await tokenFromCode()) ?? keptToken()
    await enter(token)
  }
  useEffect(() => {
    start().catch((error) => leave(messageFor(error)))
  }, [])

  return {
    session,
    signIn: async (token, isKept) => {
      try {
        await enter(token)
        if (isKept) keepToken(token)
      } catch (error) {
        leave(messageFor(error, 'The server does not accept this token.'))
      }
    },
    signOut: () => leave(''),
  }
}

/** Undefined without a code in the URL. Whoever opens the link has chosen to keep its token. */
async function tokenFromCode(): Promise<string | undefined> {
  const code = takeCode()
  if (code === undefined) return undefined
  const token = await tokenFor(new ApiClient({ base: baseOf(location), token: undefined }), code)
  keepToken(token)
  return token
}

/** An anonymous user who may list events need not sign in. */
async function mayReadSomething(client: ApiClient): Promise<boolean> {
  const events = { verb: 'list', group: '', resource: 'events', cluster: '', namespace: '' }
  return mayI(client, events).catch(() => false)
}

/** The server's URL: that of this page without `ui/`, so that a proxy may add a prefix. */
export function baseOf({ origin, pathname }: Pick<Location, 'origin' | 'pathname'>): string {
  const at = pathname.lastIndexOf('/ui/')
  return `${origin}${pathname.slice(0, at === -1 ? 0 : at)}/`
}

function messageFor(error: unknown, refused = ''): string {
  if (!(error instanceof ApiError)) return 'This page could not start.'
  return error.code === 401 ? refused : error.message
}
