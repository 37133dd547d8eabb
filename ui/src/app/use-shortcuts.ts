import { useEffect, useMemo } from 'preact/hooks'
import { Shortcuts } from '../parts/shortcuts.ts'

/** The keys of the page, listened to while the shell is shown. */
export function useShortcuts(): Shortcuts {
  const shortcuts = useMemo(() => new Shortcuts(), [])
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => shortcuts.handle(event)
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [shortcuts])
  return shortcuts
}
