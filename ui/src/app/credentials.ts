/**
 * The user's tokens: one that the server accepts, and one for each cluster that authenticates its
 * own users and was signed in to. They are held in memory or, if the user chooses so, in this tab's
 * storage.
 */

const KEY = 'tidings.token'

/**
 * A token and the only cluster that accepts it; `cluster` is undefined if the server accepts it.
 */
export interface Credential {
  readonly token: string
  readonly cluster: string | undefined
}

export class Tokens {
  readonly #entered = new Map<string | undefined, string>()
  /** The session's cluster, and whether its token is valid only there. */
  #session = { cluster: '', isBound: false }

  /**
   * Returns the token of that cluster, or otherwise the server's: never that of another cluster.
   */
  for(cluster: string): Credential | undefined {
    for (const owner of [cluster, undefined]) {
      const token = this.#entered.get(owner) ?? storedToken(owner)
      if (token !== undefined) return { token, cluster: owner }
    }
    return undefined
  }

  add({ cluster, token }: Credential, isStored: boolean): void {
    this.#entered.set(cluster, token)
    try {
      if (isStored) sessionStorage.setItem(keyOf(cluster), token)
    } catch {
      // Storage is turned off: the user signs in again after a reload.
    }
  }

  /**
   * Moves a token that was stored as the server's to the only cluster that accepts it. Tabs of
   * versions up to 0.1 stored all tokens as the server's, and would send this one to the next
   * cluster.
   */
  settle(taken: Credential | undefined, used: Credential | undefined): void {
    if (taken === undefined || used === undefined || taken.cluster === used.cluster) return
    const isStored = storedToken(taken.cluster) === taken.token
    this.#remove(taken.cluster)
    this.add(used, isStored)
  }

  /** Records that the session in that cluster uses the credential. */
  use(used: Credential | undefined, cluster: string): void {
    this.#session = { cluster, isBound: used?.cluster !== undefined }
  }

  /** Removes the session's token. Moving to another cluster starts a new session. */
  end(cluster: string): void {
    const owner = this.#session.isBound ? this.#session.cluster : undefined
    this.#remove(owner)
    this.#session = { cluster, isBound: true }
  }

  /** Whether the session's token is not valid in that cluster. */
  isElsewhere(cluster: string): boolean {
    return this.#session.isBound && this.#session.cluster !== cluster
  }

  #remove(owner: string | undefined): void {
    this.#entered.delete(owner)
    try {
      sessionStorage.removeItem(keyOf(owner))
    } catch {
      // Storage is turned off, so nothing is stored.
    }
  }

  forgetAll(): void {
    this.#entered.clear()
    try {
      for (const key of Object.keys(sessionStorage)) {
        if (key === KEY || key.startsWith(`${KEY}/`)) sessionStorage.removeItem(key)
      }
    } catch {
      // Storage is turned off, so nothing is stored.
    }
  }
}

function keyOf(cluster: string | undefined): string {
  return cluster === undefined ? KEY : `${KEY}/${cluster}`
}

/** The token that this tab has stored across reloads. */
function storedToken(cluster: string | undefined): string | undefined {
  try {
    return sessionStorage.getItem(keyOf(cluster)) ?? undefined
  } catch {
    return undefined
  }
}

export function hasCode(): boolean {
  return codeInUrl() !== null
}

/**
 * Removes the one-time code from the URL, so that neither the browser history nor a copied link
 * contains it.
 */
export function takeCode(): string | undefined {
  const code = codeInUrl()
  if (code === null) return undefined
  history.replaceState(history.state, '', `${location.pathname}${location.search}`)
  return code
}

function codeInUrl(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get('code')
}
