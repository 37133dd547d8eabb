/** The token of the user: in memory or, if the user chooses so, in this tab's storage. */

const KEY = 'tidings.token'

/** The token that this tab has kept over a reload. */
export function keptToken(): string | undefined {
  try {
    return sessionStorage.getItem(KEY) ?? undefined
  } catch {
    return undefined
  }
}

export function keepToken(token: string): void {
  try {
    sessionStorage.setItem(KEY, token)
  } catch {
    // Storage is turned off: the user signs in again after a reload.
  }
}

export function forgetToken(): void {
  try {
    sessionStorage.removeItem(KEY)
  } catch {
    // There is nothing to forget.
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
