import type { JSX } from 'preact'
import { PlainText } from './plain-text.tsx'

/** Shows an event's type by shape and text, since not everybody can distinguish the colours. */
export function TypeMark({ type }: { readonly type: string }): JSX.Element {
  const isWarning = type === 'Warning'
  return (
    <span class={isWarning ? 'type type-warning' : 'type'}>
      <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        {isWarning ? (
          <path d="M8 1 15.5 14.5H.5zM7.2 6v4h1.6V6zm0 5v1.6h1.6V11z" fill-rule="evenodd" />
        ) : (
          <circle cx="8" cy="8" r="4" />
        )}
      </svg>
      <PlainText text={type} />
    </span>
  )
}
