/** Keyboard shortcuts of the whole page. A view adds its own while it is shown. */
import { createContext } from 'preact'
import { useContext, useEffect, useRef } from 'preact/hooks'

export interface Shortcut {
  /** Values of KeyboardEvent.key; several keys may do the same. */
  readonly keys: readonly string[]
  /** What the shortcut does, in a few words, for the help. */
  readonly title: string
  readonly run: () => void
}

/** The active shortcuts, latest first: a view may override a key of the shell. */
export class Shortcuts {
  readonly #known = new Set<{ readonly current: Shortcut }>()

  /** Returns a function that removes it. */
  add(shortcut: { readonly current: Shortcut }): () => void {
    this.#known.add(shortcut)
    return () => {
      this.#known.delete(shortcut)
    }
  }

  list(): readonly Shortcut[] {
    return [...this.#known].map(({ current }) => current)
  }

  /**
   * Runs the key's shortcut, unless the user is typing a text or the key belongs to the browser.
   */
  handle(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return
    if (isTyping(event)) return
    const found = this.list().findLast(({ keys }) => keys.includes(event.key))
    if (found === undefined) return
    event.preventDefault()
    found.run()
  }
}

export const ShortcutsContext: ReturnType<typeof createContext<Shortcuts | undefined>> =
  createContext<Shortcuts | undefined>(undefined)

/** Adds a shortcut while the component is mounted. */
export function useShortcut(shortcut: Shortcut): void {
  const shortcuts = useContext(ShortcutsContext)
  const latest = useRef(shortcut)
  latest.current = shortcut
  useEffect(() => shortcuts?.add(latest), [shortcuts])
}

function isTyping({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false
  if (target.closest('dialog') !== null) return true
  // Space presses a button that has the focus.
  if (key === ' ' && target.closest('button, a, summary') !== null) return true
  const input = target.closest('input, select, textarea')
  return input !== null && !(input instanceof HTMLInputElement && input.type === 'checkbox')
}
