/**
 * The tokens of the user: one that the server knows, and one for each cluster that was signed in to
 * and alone knows its users. They are in memory or, if the user chooses so, in this tab's storage.
 */

const KEY = 'tidings.token'

/** A token, and the only cluster that knows it; undefined: the server knows it. */
export interface Credential {
  readonly token: string
  readonly cluster: string | undefined
}

export class Tokens {
  readonly #entered = new Map<string | undefined, string>()
  /** The cluster of the session, and whether its token counts there only. */
  #session = { cluster: '', isBound: false }

  /** The token of that cluster, otherwise that of the server: never one of another cluster. */
  for(cluster: string): Credential | undefined {
    for (const owner of [cluster, undefined]) {
      const token = this.#entered.get(owner) ?? keptToken(owner)
      if (token !== undefined) return { token, cluster: owner }
    }
    return undefined
  }

  add({ cluster, token }: Credential, isKept: boolean): void {
    this.#entered.set(cluster, token)
    try {
      if (isKept) sessionStorage.setItem(keyOf(cluster), token)
    } catch {
      // Storage is turned off: the user signs in again after a reload.
    }
  }

  /**
   * Moves a token that was taken for the server's to the cluster that alone knows it: tabs of
   * versions up to 0.1 kept all tokens as the server's, and would send it to the next cluster.
   */
  settle(taken: Credential | undefined, used: Credential | undefined): void {
    if (taken === undefined || used === undefined || taken.cluster === used.cluster) return
    const isKept = keptToken(taken.cluster) === taken.token
    this.#remove(taken.cluster)
    this.add(used, isKept)
  }

  /** Notes that the session in that cluster uses the credential. */
  use(used: Credential | undefined, cluster: string): void {
    this.#session = { cluster, isBound: used?.cluster !== undefined }
  }

  /** Forgets the token of the session. A session that begins in another cluster begins anew. */
  end(cluster: string): void {
    const owner = this.#session.isBound ? this.#session.cluster : undefined
    this.#remove(owner)
    this.#session = { cluster, isBound: true }
  }

  /** Whether the token of the session does not count in that cluster. */
  isElsewhere(cluster: string): boolean {
    return this.#session.isBound && this.#session.cluster !== cluster
  }

  #remove(owner: string | undefined): void {
    this.#entered.delete(owner)
    try {
      sessionStorage.removeItem(keyOf(owner))
    } catch {
      // There is nothing to forget.
    }
  }

  forgetAll(): void {
    this.#entered.clear()
    try {
      for (const key of Object.keys(sessionStorage)) {
        if (key === KEY || key.startsWith(`${KEY}/`)) sessionStorage.removeItem(key)
      }
    } catch {
      // There is nothing to forget.
    }
  }
}

function keyOf(cluster: string | undefined): string {
  return cluster === undefined ? KEY : `${KEY}/${cluster}`
}

/** The token that this tab has kept over a reload. */
function keptToken(cluster: string | undefined): string | undefined {
  try {
    return sessionStorage.getItem(keyOf(cluster)) ?? undefined
  } catch {
    return undefined
  }
}

export function hasCode(): boolean {
  return codeInUrl() !== null
}

/** Takes the one-time code out of the URL, so that neither the history nor a copied link has it. */
export function takeCode(): string | undefined {
  const code = codeInUrl()
  if (code === null) return undefined
  history.replaceState(history.state, '', `${location.pathname}${location.search}`)
  return code
}

function codeInUrl(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get('code')
}
