import type { JSX } from 'preact'

export function TailView(): JSX.Element {
  return <h1>Live</h1>
}
