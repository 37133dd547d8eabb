/** The colours of base.css for what is drawn on canvases. */
import { useEffect, useState } from 'preact/hooks'

/** Sent to the window when the user chooses light or dark. */
export const THEME_CHANGED = 'tidings:theme'

const NAMES = ['surface', 'text', 'muted', 'line', 'accent', 'normal', 'warning'] as const

export type Colours = Readonly<Record<(typeof NAMES)[number], string>>

/** Other colours when the theme changes. */
export function useColours(): Colours {
  const [colours, setColours] = useState(readColours)
  useEffect(() => {
    const onChange = (): void => setColours(readColours())
    const system = matchMedia('(prefers-color-scheme: dark)')
    window.addEventListener(THEME_CHANGED, onChange)
    system.addEventListener('change', onChange)
    return () => {
      window.removeEventListener(THEME_CHANGED, onChange)
      system.removeEventListener('change', onChange)
    }
  }, [])
  return colours
}

function readColours(): Colours {
  const style = getComputedStyle(document.documentElement)
  const entries = NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])
  return Object.fromEntries(entries) as Colours
}
