/** The colours of base.css, for canvases. */
import { useEffect, useState } from 'preact/hooks'

/** Dispatched on the window when the user or the system switches between light and dark. */
export const THEME_CHANGED = 'tidings:theme'

const NAMES = ['surface', 'text', 'muted', 'line', 'accent', 'normal', 'warning'] as const

export type Colours = Readonly<Record<(typeof NAMES)[number], string>>

/** Returns new colours when the theme changes. */
export function useColours(): Colours {
  const [colours, setColours] = useState(readColours)
  useEffect(() => {
    const onChange = (): void => setColours(readColours())
    window.addEventListener(THEME_CHANGED, onChange)
    return () => window.removeEventListener(THEME_CHANGED, onChange)
  }, [])
  return colours
}

function readColours(): Colours {
  const style = getComputedStyle(document.documentElement)
  const entries = NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])
  return Object.fromEntries(entries) as Colours
}
