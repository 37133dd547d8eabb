import type { JSX } from 'preact'

export function ObjectView(): JSX.Element {
  return <h1>Object</h1>
}
