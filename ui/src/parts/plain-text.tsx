import type { JSX } from 'preact'
import { visible } from '../model/visible.ts'

/**
 * A text that somebody else has chosen: of an event, a user, a cluster. Shown as it is, character by
 * character, and its direction stays inside. Every such text on the page is shown with this, or in
 * attributes and on canvases with `visible` and `isolated`.
 */
export function PlainText({ text }: { readonly text: string }): JSX.Element {
  return <bdi>{visible(text)}</bdi>
}
