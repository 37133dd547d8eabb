/**
 * What a reader does with a page, step by step:
 *
 * - A block `sh` is typed into the main terminal, and must succeed. `sh NAME` is typed into a terminal of
 *   that name, where its last command goes on: a server, or a watch. `sh example` has names that the reader
 *   replaces, and is not typed.
 * - A block `text` is what the last command prints; `text NAME` is what that terminal shows by now. A line
 *   with three dots stands for any number of lines.
 * - The comment `follow: ctrl-c NAME` interrupts what runs in that terminal, where the page tells the reader
 *   to press Ctrl-C.
 *
 * The words behind `sh` and `text` are not shown to readers.
 */
import { blocksOf } from '../../../tools/markdown.ts'

export const MAIN = 'main'
const EXAMPLE = 'example'

export interface Step {
  readonly line: number
  readonly what: 'type' | 'expect' | 'ctrl-c'
  readonly terminal: string
  /** What is typed or expected. */
  readonly text: string
}

const LANGUAGES: Readonly<Record<string, 'type' | 'expect'>> = { sh: 'type', text: 'expect' }

export function stepsOf(page: string): readonly Step[] {
  const steps: Step[] = []
  for (const { line, language, text } of blocksOf(page)) {
    const [kind = '', name] = language.split(' ')
    const what = LANGUAGES[kind]
    if (what === undefined || name === EXAMPLE) continue
    const last = steps.findLast((step) => step.what === 'type')?.terminal
    const terminal = name ?? (what === 'type' ? MAIN : (last ?? MAIN))
    steps.push({ line, what, terminal, text })
  }
  for (const [index, text] of page.split('\n').entries()) {
    const [, terminal] = /^<!-- follow: ctrl-c (\w+) -->$/.exec(text) ?? []
    if (terminal !== undefined) steps.push({ line: index + 1, what: 'ctrl-c', terminal, text })
  }
  return steps.toSorted((one, other) => one.line - other.line)
}
