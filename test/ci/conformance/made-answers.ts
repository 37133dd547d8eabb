/** Responses made from the expected ones, for tests of the comparison, which need no server. */
import { isObject, type Json, type JsonObject } from '../../../src/lib/json.ts'
import type { Answer } from './client.ts'
import type { Place } from './normal-form.ts'
import { inOurForm } from './our-form.ts'
import { type Promised, type Step, USUAL_HEADERS } from './recording.ts'

export const PLACE: Place = { namespace: 'somewhere-k3x9' }

const CHOSEN: Readonly<Record<string, string>> = {
  '<uid>': '8b0f6a3e-52d1-4c8f-9a77-0d5e1c2b3a49',
  '<rv>': '17003',
  '<time>': '2026-11-15T03:14:15Z',
  '<token>': 'eyJhIjoxfQ',
  '<hash>': 'r2yiGXH7wu8=',
  '<text>': 'What the column shows.',
  '<age>': '3m12s',
  '<suffix>': 'x4b2c',
  '<ns>': PLACE.namespace,
}

/** A response to a step that a correct server might send: ours, unless `inForm` says otherwise. */
export function rightAnswer(step: Step, inForm: typeof inOurForm = inOurForm): Answer {
  const expected = step.ours?.answer ?? step.answer
  const isCore = !step.path.startsWith('/apis/')
  const headers = Object.fromEntries(
    Object.entries({ ...USUAL_HEADERS, ...expected.headers }).filter(([, value]) => value !== null),
  ) as Record<string, string>
  return {
    status: expected.status,
    headers,
    body: Buffer.from(rightBody(expected, (tree) => inForm(tree, isCore))),
    ended: expected.ends ?? true,
  }
}

/** The same response with another body. */
export function withBody(answer: Answer, body: string): Answer {
  return { ...answer, body: Buffer.from(body) }
}

function rightBody(expected: Promised, inForm: (tree: Json) => Json): string | Buffer {
  if (expected.base64 !== undefined) return Buffer.from(expected.base64, 'base64')
  if (expected.frames !== undefined) {
    return chosen(expected.frames.map((frame) => `${JSON.stringify(inForm(frame))}\n`).join(''))
  }
  if (expected.matches !== undefined) return textLike(expected.matches)
  if (expected.text !== undefined) return chosen(expected.text)
  const tree = expected.json ?? expected.yaml ?? withMessage(expected)
  const layout = expected.layout === 'pretty' ? 2 : undefined
  return chosen(
    `${JSON.stringify(inForm(tree), undefined, layout)}${layout === undefined ? '\n' : ''}`,
  )
}

function withMessage({ includes = {}, says }: Promised): JsonObject {
  return says === undefined ? includes : { ...includes, message: says.replace('.*', ' ') }
}

/** Our patterns of texts are literal except for optional groups. */
function textLike(pattern: string): string {
  return pattern
    .replaceAll('(?:\\[\\+\\][\\w/-]+ ok\\n)*', '')
    .replaceAll('\\n', '\n')
    .replaceAll('\\', '')
}

function chosen(text: string): string {
  return text.replace(/<\w+>/g, (placeholder) => CHOSEN[placeholder] ?? placeholder)
}

/**
 * Every tree that differs from this one in one place: a member is missing, or a leaf is different.
 */
export function* alterations(tree: Json): Generator<Json> {
  if (Array.isArray(tree)) {
    yield [...tree, 'one more']
    for (const [index, item] of tree.entries()) {
      yield tree.toSpliced(index, 1)
      for (const other of alterations(item)) yield tree.with(index, other)
    }
  } else if (isObject(tree)) {
    yield { ...tree, unheard: 'of' }
    for (const [name, value] of Object.entries(tree)) {
      const { [name]: _, ...others } = tree
      yield others
      for (const other of alterations(value)) yield { ...tree, [name]: other }
    }
  } else yield tree === '' ? 'something else' : ''
}
