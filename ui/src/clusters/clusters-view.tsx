import type { JSX } from 'preact'

export function ClustersView(): JSX.Element {
  return <h1>Clusters</h1>
}
