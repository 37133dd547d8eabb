import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Shortcuts } from '../parts/shortcuts.ts'

/** Lists the keyboard shortcuts of the current view. */
export function HelpDialog({
  shortcuts,
  onClose,
}: {
  readonly shortcuts: Shortcuts
  readonly onClose: () => void
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={onClose}>
      <h2 id="help-title">Keys</h2>
      <dl>
        {shortcuts.list().map(({ keys, title }) => (
          <div key={title}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key === ' ' ? 'space' : key}</kbd>
              ))}
            </dt>
            <dd>{title}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}
