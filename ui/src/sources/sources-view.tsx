import type { JSX } from 'preact'

export function SourcesView(): JSX.Element {
  return <h1>Sources</h1>
}
