/** Turns a response of Kubernetes into the form in which the recordings hold it. */
import { isDeepStrictEqual } from 'node:util'
import { parse as parseYaml } from 'yaml'
import { isObject, type Json, memberOf } from '../../../src/lib/json.ts'
import { protobufTree, withoutManagedFields } from '../../support/protobuf-tree.ts'
import type { Answer } from './client.ts'
import { namespaceIn, normalText, normalTree, type Place } from './normal-form.ts'
import { type Expected, type Step, USUAL_HEADERS } from './recording.ts'

/** The headers that are recorded. */
const HEADERS = [...Object.keys(USUAL_HEADERS), 'warning', 'x-content-type-options']

export interface RecordedPlace extends Place {
  /** Only the suite of applies compares them: see `managed-fields-begin-with-apply`. */
  readonly hasManagedFields: boolean
}

/** The answer of the step itself if the response is equal to it. */
export function recordedAnswer(step: Step, answer: Answer, place: RecordedPlace): Expected {
  const recorded: Expected = {
    status: answer.status,
    ...headersOf(answer),
    ...bodyOf(step, answer, place),
  }
  return isSame(step, recorded) ? step.answer : recorded
}

function headersOf({ headers }: Answer): Pick<Expected, 'headers'> {
  const unusual = HEADERS.filter((name) => headers[name] !== USUAL_HEADERS[name])
  if (unusual.length === 0) return {}
  const values = unusual.map((name) => [name, headers[name] ?? null] as const)
  return { headers: Object.fromEntries(values) as Record<string, string | null> }
}

function bodyOf(step: Step, answer: Answer, place: RecordedPlace): Partial<Expected> {
  const type = String(answer.headers['content-type'] ?? '')
  const text = answer.body.toString('utf8')
  if (type.includes('protobuf')) return { base64: answer.body.toString('base64') }
  const tidy = (tree: Json): Json =>
    withoutQuoted(normalTree(place.hasManagedFields ? tree : withoutManagedFields(tree), place))
  if (type.includes('yaml')) return { yaml: tidy(parseYaml(text)) }
  if (type === 'application/json' && step.watchMs !== undefined) {
    const lines = text.split('\n').filter((line) => line !== '')
    const frames = lines.map((line) => tidy(JSON.parse(line)))
    return step.answer.ends === undefined ? { frames } : { frames, ends: answer.ended }
  }
  if (type !== 'application/json' || text === '') return { text: normalText(text, place) }
  return {
    json: tidy(JSON.parse(text)),
    ...(step.answer.layout !== undefined && {
      layout: text.includes('\n  ') ? 'pretty' : 'compact',
    }),
  }
}

/** Some messages quote the stored object, with its version and times. */
const QUOTED: readonly (readonly [RegExp, string])[] = [
  [/(?<=\\"resourceVersion\\":\\")\d+(?=\\")/g, '<rv>'],
  [/(?<=\\"(?:creationTimestamp|time)\\":\\")[\dTZ:-]+(?=\\")/g, '<time>'],
]

function withoutQuoted(tree: Json): Json {
  if (Array.isArray(tree)) return tree.map(withoutQuoted)
  if (typeof tree === 'string') {
    return QUOTED.reduce((text, [looks, becomes]) => text.replace(looks, becomes), tree)
  }
  if (!isObject(tree)) return tree
  const members = Object.entries(tree).map(([name, value]) => [name, withoutQuoted(value)])
  return Object.fromEntries(members)
}

function isSame({ match, answer: before, watchMs }: Step, after: Expected): boolean {
  if (match === 'status-and-kind') {
    return after.status === before.status && kindOf(after) === kindOf(before)
  }
  if (before.base64 === undefined || after.base64 === undefined) {
    return isDeepStrictEqual(withoutRandom(after), withoutRandom(before))
  }
  const [left, right] = [before, after].map(({ base64 = '', ...rest }) => {
    const bytes = Buffer.from(base64, 'base64')
    const namespace = namespaceIn(bytes)
    return { ...rest, tree: normalTree(protobufTree(bytes, watchMs !== undefined), { namespace }) }
  })
  return isDeepStrictEqual(left, right)
}

/** The error in a stream says to retry after one to three seconds, at random. */
function withoutRandom({ frames, ...rest }: Expected): unknown {
  const replacer = (name: string, value: unknown) => (name === 'retryAfterSeconds' ? 0 : value)
  return { ...rest, frames: frames && JSON.parse(JSON.stringify(frames, replacer)) }
}

function kindOf({ json }: Expected): Json | undefined {
  return isObject(json) ? memberOf(json, 'kind') : undefined
}
