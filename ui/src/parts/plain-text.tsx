import type { JSX } from 'preact'
import { visible } from '../model/visible.ts'

/**
 * A text chosen by somebody else: of an event, a user or a cluster. It is shown verbatim, character
 * by character, and its direction stays inside. Every such text on the page uses this component or,
 * in attributes and on canvases, `visible` and `isolated`.
 */
export function PlainText({ text }: { readonly text: string }): JSX.Element {
  return <bdi>{visible(text)}</bdi>
}
