import type { JSX } from 'preact'

/** What the server can answer for: how far back events go, what is missing, its own state. */
export function StatusFooter(): JSX.Element {
  return <footer class="status" />
}
