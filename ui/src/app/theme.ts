/** Light or dark: the system's choice, or the user's choice in this browser. */

import { THEME_CHANGED } from '../parts/use-colours.ts'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'tidings.theme'

const DARK = '(prefers-color-scheme: dark)'

export function chosenTheme(): Theme {
  const chosen = document.documentElement.dataset['chosenTheme'] ?? readStored()
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system'
}

export function startTheme(): void {
  matchMedia(DARK).addEventListener('change', () => show(chosenTheme()))
  show(chosenTheme())
}

export function chooseTheme(theme: Theme): void {
  try {
    if (theme === 'system') localStorage.removeItem(KEY)
    else localStorage.setItem(KEY, theme)
  } catch {
    // Storage is turned off: the choice holds until the page is closed.
  }
  show(theme)
}

function show(theme: Theme): void {
  const { dataset } = document.documentElement
  const system = matchMedia(DARK).matches ? 'dark' : 'light'
  dataset['chosenTheme'] = theme
  dataset['theme'] = theme === 'system' ? system : theme
  window.dispatchEvent(new Event(THEME_CHANGED))
}

function readStored(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}
