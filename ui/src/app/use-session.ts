/**
 * Signs the user in. The page first tries what the browser has: the code of `tidings dev`, a token
 * stored by this tab, a client certificate, or a proxy that adds credentials. If none of these
 * identifies the user, the user pastes a token.
 */
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, asApiError } from '../api/api-error.ts'
import { ApiClient, type ClientOptions } from '../api/client.ts'
import { knownIn } from '../api/paths.ts'
import { type Caller, mayI, tokenFor, whoAmI } from '../api/session.ts'
import { readQuery } from '../model/query.ts'
import { isFinal } from '../model/retries.ts'
import { type Credential, hasCode, Tokens, takeCode } from './credentials.ts'

export type Session =
  | { readonly state: 'starting' }
  /** The server did not say who the user is; a retry may succeed. */
  | { readonly state: 'failed'; readonly error: ApiError; readonly isRetrying: boolean }
  | { readonly state: 'signed-out'; readonly message: string }
  /** The session came from a proxy or a certificate, so this page cannot sign in again. */
  | { readonly state: 'ended' }
  | {
      readonly state: 'signed-in'
      readonly client: ApiClient
      readonly caller: Caller
      /** Whether there is a token to remove. */
      readonly hasToken: boolean
    }

export interface SessionControl {
  readonly session: Session
  /** Starts again after a failure. */
  readonly retry: () => void
  readonly signIn: (token: string, isStored: boolean) => Promise<void>
  readonly signOut: () => void
  /** Must be called when the URL's cluster changes: the user may have a different token there. */
  readonly moved: () => void
}

export function useSession(): SessionControl {
  const [session, setSession] = useState<Session>({ state: 'starting' })
  const attempt = useRef(new AbortController())
  const code = useRef<string>(undefined)
  const tokens = useRef(new Tokens()).current

  /** Cancels all requests in flight. */
  const begin = (state: Session): AbortSignal => {
    attempt.current.abort()
    attempt.current = new AbortController()
    setSession(state)
    return attempt.current.signal
  }
  /** Removes the token of the current cluster. */
  const leave = (message: string): void => {
    tokens.end(clusterInUrl())
    begin({ state: 'signed-out', message })
  }
  const enter = async (used: Credential | undefined, signal: AbortSignal): Promise<Entry> => {
    let isIn = false
    const onUnauthorized = (): void => {
      if (isIn && used !== undefined) leave(NO_LONGER_ACCEPTED)
      else if (isIn) begin({ state: 'ended' })
    }
    const entry = await entryOf(used, { tokens, signal, onUnauthorized })
    isIn = true
    if (entry === undefined) leave('')
    else setSession({ ...entry, state: 'signed-in', hasToken: used !== undefined })
    return entry
  }
  const start = async (): Promise<void> => {
    // The error stays on the screen during a retry, which also lets the delays between retries grow.
    const isRetrying = session.state === 'failed'
    const signal = begin(isRetrying ? { ...session, isRetrying } : { state: 'starting' })
    code.current = takeCode() ?? code.current
    try {
      const used =
        code.current === undefined
          ? tokens.for(clusterInUrl())
          : await tokenBy(code.current, { tokens, signal })
      code.current = undefined
      const entry = await enter(used, signal)
      tokens.settle(used, entry?.used)
    } catch (error) {
      if (!signal.aborted) stop(error)
    }
  }
  /** A code that the server has not rejected stays available for the next start. */
  const stop = (error: unknown): void => {
    if (code.current !== undefined && isRefused(error)) {
      code.current = undefined
      leave(`This link no longer signs you in: ${asApiError(error).message}`)
    } else if (isUnauthorized(error)) {
      leave(tokens.for(clusterInUrl()) === undefined ? '' : NO_LONGER_ACCEPTED)
    } else setSession({ state: 'failed', error: asApiError(error), isRetrying: false })
  }
  const signIn: SessionControl['signIn'] = async (token, isStored) => {
    if (!TOKEN.test(token)) return leave(NO_TOKEN)
    const signal = begin(session)
    try {
      const entry = await enter({ token, cluster: clusterInUrl() }, signal)
      if (entry?.used !== undefined) tokens.add(entry.used, isStored)
    } catch (error) {
      if (!signal.aborted) leave(isUnauthorized(error) ? NOT_ACCEPTED : asApiError(error).message)
    }
  }
  const signOut = (): void => {
    tokens.forgetAll()
    leave('')
  }
  const moved = (): void => {
    if (tokens.isElsewhere(clusterInUrl())) void start()
  }
  useStart(start, moved)
  return { session, retry: () => void start(), signIn, signOut, moved }
}

/** The user and the credential, with the only cluster that accepts it. */
type Entry =
  | {
      readonly caller: Caller
      readonly client: ApiClient
      readonly used: Credential | undefined
    }
  | undefined

/**
 * Undefined for an anonymous user who may not list events. Until the server has said which cluster
 * a token belongs to, it is sent only to the cluster that it was entered for.
 */
async function entryOf(
  entered: Credential | undefined,
  {
    tokens,
    signal,
    onUnauthorized,
  }: { readonly tokens: Tokens } & Required<Pick<ClientOptions, 'signal' | 'onUnauthorized'>>,
): Promise<Entry> {
  const [base, cluster] = [baseOf(location), clusterInUrl()]
  const sent = { base, token: entered?.token, cluster, signal }
  tokens.use(entered, cluster)
  const asking = new ApiClient({ ...sent, tokenOf: cluster })
  const caller = await whoAmI(asking, cluster)
  if (caller.isAnonymous && !(await mayListEvents(asking, cluster))) return undefined
  const tokenOf = caller.isOfCluster ? cluster : undefined
  const used = entered && { token: entered.token, cluster: tokenOf }
  tokens.use(used, cluster)
  return { caller, client: new ApiClient({ ...sent, tokenOf, onUnauthorized }), used }
}

/** The cluster in the URL, whose users sign in here. */
function clusterInUrl(): string {
  return knownIn(readQuery(location.search).cluster)
}

/**
 * Also starts when a link with a code is opened in a tab that already shows the page, since that
 * does not reload it.
 */
function useStart(start: () => Promise<void>, moved: () => void): void {
  useEffect(() => {
    const onHashChange = (): void => {
      if (hasCode()) void start()
    }
    window.addEventListener('hashchange', onHashChange)
    window.addEventListener('popstate', moved)
    void start()
    return () => {
      window.removeEventListener('hashchange', onHashChange)
      window.removeEventListener('popstate', moved)
    }
  }, [])
}

/** Characters that a header can carry. */
const TOKEN = /^[\x21-\x7e]+$/
const NO_TOKEN =
  'This is not a token: it contains spaces or characters that are not allowed in tokens. Some programs truncate copied text.'
const NOT_ACCEPTED = 'The server does not accept this token.'
const NO_LONGER_ACCEPTED = 'The server no longer accepts your token.'

/** Opening the link implies the choice to store its token in this tab. */
async function tokenBy(
  code: string,
  { tokens, signal }: { readonly tokens: Tokens; readonly signal: AbortSignal },
): Promise<Credential> {
  const client = new ApiClient({ base: baseOf(location), token: undefined, signal })
  const used = { token: await tokenFor(client, code), cluster: undefined }
  tokens.add(used, true)
  return used
}

/** An anonymous user who may list events does not have to sign in. */
async function mayListEvents(client: ApiClient, cluster: string): Promise<boolean> {
  const events = { verb: 'list', group: '', resource: 'events', cluster, namespace: '' }
  return mayI(client, events).catch(() => false)
}

/** The server's URL: this page's URL without `ui/`, so that a proxy may add a prefix. */
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
