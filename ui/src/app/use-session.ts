/**
 * Signing in. The page first tries what the browser has anyway: the code of `tidings dev`, a token
 * kept by this tab, a client certificate, or a proxy that adds credentials. If the server does not
 * know the user by these, the user pastes a token.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, asApiError } from '../api/api-error.ts'
import { ApiClient } from '../api/client.ts'
import { knownIn } from '../api/paths.ts'
import { type Caller, mayI, tokenFor, whoAmI } from '../api/session.ts'
import { readQuery } from '../model/query.ts'
import { isFinal } from '../model/retries.ts'
import { forgetToken, hasCode, keepToken, keptToken, takeCode } from './credentials.ts'

export type Session =
  | { readonly state: 'starting' }
  /** The server did not say who the user is: it may do so later. */
  | { readonly state: 'failed'; readonly error: ApiError }
  | { readonly state: 'signed-out'; readonly message: string }
  /** Of a proxy in between, or a certificate: signing in again is not up to this page. */
  | { readonly state: 'ended' }
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
  const attempt = useRef(new AbortController())
  const code = useRef<string>(undefined)

  /** Ends whatever was under way: its answers come too late. */
  const begin = (state: Session): AbortSignal => {
    attempt.current.abort()
    attempt.current = new AbortController()
    setSession(state)
    return attempt.current.signal
  }
  const leave = (message: string): void => {
    forgetToken()
    begin({ state: 'signed-out', message })
  }
  const enter = async (token: string | undefined, signal: AbortSignal): Promise<void> => {
    const hasToken = token !== undefined
    let isIn = false
    const cluster = knownIn(readQuery(location.search).cluster)
    const client = new ApiClient({
      ...{ base: baseOf(location), token, cluster, signal },
      onUnauthorized: () => {
        if (isIn && hasToken) leave(NO_LONGER_ACCEPTED)
        else if (isIn) begin({ state: 'ended' })
      },
    })
    const caller = await whoAmI(client, cluster)
    if (caller.isAnonymous && !(await mayListEvents(client, cluster))) return leave('')
    isIn = true
    setSession({ state: 'signed-in', client, caller, hasToken })
  }
  const start = async (): Promise<void> => {
    const signal = begin({ state: 'starting' })
    code.current = takeCode() ?? code.current
    try {
      const token = code.current === undefined ? keptToken() : await tokenOf(code.current, signal)
      code.current = undefined
      await enter(token, signal)
    } catch (error) {
      if (!signal.aborted) stop(error)
    }
  }
  /** A code that the server has not refused is still there for the next start. */
  const stop = (error: unknown): void => {
    if (code.current !== undefined && isRefused(error)) {
      code.current = undefined
      leave(`This link no longer signs you in: ${asApiError(error).message}`)
    } else if (isUnauthorized(error)) leave(keptToken() === undefined ? '' : NO_LONGER_ACCEPTED)
    else setSession({ state: 'failed', error: asApiError(error) })
  }
  const signIn: SessionControl['signIn'] = async (token, isKept) => {
    if (!TOKEN.test(token)) return leave(NO_TOKEN)
    const signal = begin(session)
    try {
      await enter(token, signal)
      if (isKept) keepToken(token)
    } catch (error) {
      if (!signal.aborted) leave(isUnauthorized(error) ? NOT_ACCEPTED : asApiError(error).message)
    }
  }
  useStart(start)
  return { session, retry: () => void start(), signIn, signOut: () => leave('') }
}

/** Also when a link with a code is opened in a tab that has the page, which does not load it again. */
function useStart(start: () => Promise<void>): void {
  useEffect(() => {
    const onHashChange = (): void => {
      if (hasCode()) void start()
    }
    window.addEventListener('hashchange', onHashChange)
    void start()
    return () => window.removeEventListener('hashchange', onHashChange)
  }, [])
}

/** What a header can hold. */
const TOKEN = /^[\x21-\x7e]+$/
const NO_TOKEN =
  'This is not a token: it has spaces, or characters that tokens do not have. Some programs shorten texts that are copied.'
const NOT_ACCEPTED = 'The server does not accept this token.'
const NO_LONGER_ACCEPTED = 'The server no longer accepts your token.'

/** Whoever opens the link has chosen to keep its token. */
async function tokenOf(code: string, signal: AbortSignal): Promise<string> {
  const client = new ApiClient({ base: baseOf(location), token: undefined, signal })
  const token = await tokenFor(client, code)
  keepToken(token)
  return token
}

/** An anonymous user who may list events need not sign in. */
async function mayListEvents(client: ApiClient, cluster: string): Promise<boolean> {
  const events = { verb: 'list', group: '', resource: 'events', cluster, namespace: '' }
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

function isRefused(error: unknown): boolean {
  return error instanceof ApiError && isFinal(error.code)
}
