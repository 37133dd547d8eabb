import type { JSX } from 'preact'

export function LanesView(): JSX.Element {
  return <h1>Lanes</h1>
}
