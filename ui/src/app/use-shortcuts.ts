import { useEffect, useMemo } from 'preact/hooks'
import { Shortcuts } from '../parts/shortcuts.ts'

/** Listens to the page's keyboard shortcuts while the shell is mounted. */
export function useShortcuts(): Shortcuts {
  const shortcuts = useMemo(() => new Shortcuts(), [])
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => shortcuts.handle(event)
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [shortcuts])
  return shortcuts
}
