/** Light or dark: as the system says, or as the user has chosen in this browser. */

import { THEME_CHANGED } from '../parts/use-colours.ts'

export type Theme = 'system' | 'light' | 'dark'

const KEY = 'tidings.theme'

export function chosenTheme(): Theme {
  const stored = readStored()
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

export function startTheme(): void {
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
  if (theme === 'system') delete dataset['theme']
  else dataset['theme'] = theme
  window.dispatchEvent(new Event(THEME_CHANGED))
}

function readStored(): string | null {
  try {
    return localStorage.getItem(KEY)
  } catch {
    return null
  }
}
