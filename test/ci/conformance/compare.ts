import { parse as parseYaml } from 'yaml'
import { isObject, type Json, memberOf } from '../../../src/lib/json.ts'
import { protobufTree } from '../../support/protobuf-tree.ts'
import type { Answer } from './client.ts'
import { namespaceIn, normalText, normalTree, type Place } from './normal-form.ts'
import { inOurForm } from './our-form.ts'
import {
  type Expected,
  type Promised,
  RECORDED_GROUP,
  type Step,
  USUAL_HEADERS,
} from './recording.ts'
import { shown, shownBeside, treeDifferences } from './tree-difference.ts'

/** What is wrong with the response to a step: one line each, none when it is correct. */
export function judge(step: Step, answer: Answer, place: Place): readonly string[] {
  const expected = step.ours?.answer ?? step.answer
  const wrong = wrongStatus(answer, expected)
  if (wrong.length > 0) return wrong
  if (step.match !== undefined && step.ours === undefined) {
    const members = step.match === 'status-and-kind' ? ['kind'] : ['kind', 'reason', 'code']
    return [...wrongHeaders(answer, expected), ...wrongMembers(answer, expected, members)]
  }
  return [
    ...wrongHeaders(answer, expected),
    ...wrongBody({ step, answer, expected, place }),
    ...wrongRetryAfter(answer),
  ]
}

function wrongStatus(answer: Answer, expected: Expected): readonly string[] {
  if (answer.status === expected.status) return []
  const said = messageOf(answer)
  return [`status ${answer.status}, wanted ${expected.status}${said === '' ? '' : ` (${said})`}`]
}

function wrongHeaders(answer: Answer, expected: Expected): readonly string[] {
  const wanted = { ...USUAL_HEADERS, warning: null, ...expected.headers }
  return Object.entries(wanted).flatMap(([name, value]) => {
    const got = answer.headers[name]
    if (got === undefined && value === null) return []
    if (got === value) return []
    return [`${name}: ${shown(got as Json | undefined)}, wanted ${shown(value ?? undefined)}`]
  })
}

/** A client retries only if the header says when; the body is for people. */
function wrongRetryAfter(answer: Answer): readonly string[] {
  const body = jsonOf(answer)
  const details = isObject(body) ? memberOf(body, 'details') : undefined
  const seconds = isObject(details) ? memberOf(details, 'retryAfterSeconds') : undefined
  if (seconds === undefined || answer.headers['retry-after'] === String(seconds)) return []
  return [`retry-after: ${shown(answer.headers['retry-after'] as Json)}, the body says ${seconds}`]
}

function wrongMembers(
  answer: Answer,
  expected: Expected,
  members: readonly string[],
): readonly string[] {
  const got = jsonOf(answer)
  if (got === undefined) return [`not JSON: ${shown(answer.body.toString('utf8'))}`]
  const wanted = expected.json ?? expected.frames?.[0] ?? {}
  return members.flatMap((name) => {
    const [left, right] = [got, wanted].map((tree) =>
      isObject(tree) ? memberOf(tree, name) : undefined,
    )
    return left === right ? [] : [`.${name}: ${shown(left)}, wanted ${shown(right)}`]
  })
}

interface Comparison {
  readonly step: Step
  readonly answer: Answer
  readonly expected: Promised
  readonly place: Place
}

function wrongBody(comparison: Comparison): readonly string[] {
  const { answer, expected, place } = comparison
  const text = answer.body.toString('utf8')
  if (expected.frames !== undefined) return wrongFrames(comparison, expected.frames)
  if (expected.yaml !== undefined) return wrongTree(comparison, yamlOf(text), expected.yaml)
  if (expected.base64 !== undefined) return wrongBytes(comparison, expected.base64)
  if (expected.text !== undefined) {
    const got = normalText(text, place)
    return got === expected.text ? [] : [`text ${shownBeside(got, expected.text)}`]
  }
  if (expected.matches !== undefined) {
    const pattern = new RegExp(`^(?:${expected.matches})$`)
    return pattern.test(text) ? [] : [`text ${shown(text)} is not like ${expected.matches}`]
  }
  const got = jsonOf(answer)
  if (got === undefined) return [`not JSON: ${shown(text)}`]
  if (expected.includes !== undefined) {
    return [
      ...wrongTree(comparison, only(got, expected.includes), expected.includes),
      ...wrongMessage(got, expected.says),
      ...wrongLayout(text, got, expected.layout),
    ]
  }
  return [
    ...wrongTree(comparison, got, expected.json ?? {}),
    ...wrongLayout(text, got, expected.layout),
  ]
}

function wrongMessage(got: Json, pattern: string | undefined): readonly string[] {
  if (pattern === undefined) return []
  const message = isObject(got) ? memberOf(got, 'message') : undefined
  return typeof message === 'string' && new RegExp(pattern).test(message)
    ? []
    : [`.message: ${shown(message)} does not say ${pattern}`]
}

function wrongTree(
  { step, place }: Comparison,
  got: Json | undefined,
  wanted: Json,
): readonly string[] {
  if (got === undefined) return ['not the document it says it is']
  const isCore = !step.path.startsWith('/apis/')
  return treeDifferences(normalTree(got, place), inOurForm(wanted, isCore))
}

function wrongFrames(comparison: Comparison, wanted: readonly Json[]): readonly string[] {
  const { answer, expected } = comparison
  const lines = answer.body.toString('utf8').split('\n')
  const rest = lines.pop()
  const frames = lines.filter((line) => line !== '').map(frameOf)
  const wrong = [...wrongTree(comparison, frames, [...wanted])]
  if (rest !== '') wrong.push(`a line without an end: ${shown(rest ?? '')}`)
  if (expected.ends !== undefined && expected.ends !== answer.ended) {
    wrong.push(answer.ended ? 'the stream ended by itself' : 'the stream did not end')
  }
  return wrong
}

/** Compact JSON ends with a line break, pretty JSON does not. */
function wrongLayout(text: string, tree: Json, layout: Expected['layout']): readonly string[] {
  if (layout === undefined) return []
  const laidOut =
    layout === 'pretty' ? JSON.stringify(tree, undefined, 2) : `${JSON.stringify(tree)}\n`
  return unescaped(text) === laidOut ? [] : [`not ${layout}: ${shownBeside(text, laidOut)}`]
}

/** Characters that Go escapes and JavaScript does not are equal in both forms. */
function unescaped(text: string): string {
  return text.replace(/\\u(003c|003e|0026|2028|2029)/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}

/** Field by field, both decoded: the same message can be encoded in many ways. */
function wrongBytes(comparison: Comparison, base64: string): readonly string[] {
  const { step, answer, place } = comparison
  const isWatch = step.watchMs !== undefined
  const wanted = Buffer.from(base64, 'base64')
  const namespace = namespaceIn(wanted)
  try {
    return treeDifferences(
      normalTree(normalTree(protobufTree(answer.body, isWatch), place), { namespace }),
      inGroupOf(step, normalTree(protobufTree(wanted, isWatch), { namespace })),
    )
  } catch (error) {
    return [`not the protobuf it should be: ${error}`]
  }
}

/** Bytes were recorded for one group only; the path gives the group that is played. */
function inGroupOf({ path }: Step, tree: Json): Json {
  const [, group = RECORDED_GROUP] = /^\/apis\/([^/]+)/.exec(path) ?? []
  return JSON.parse(JSON.stringify(tree).replaceAll(RECORDED_GROUP, group)) as Json
}

/** The part of a tree that has the members of another. */
function only(tree: Json, shape: Json): Json {
  if (!isObject(tree) || !isObject(shape)) return tree
  return Object.fromEntries(
    Object.entries(shape).flatMap(([name, inner]) => {
      const value = memberOf(tree, name)
      return value === undefined ? [] : [[name, only(value, inner)]]
    }),
  )
}

function frameOf(line: string): Json {
  try {
    return JSON.parse(line)
  } catch {
    return `not JSON: ${line.slice(0, 80)}`
  }
}

function jsonOf(answer: Answer): Json | undefined {
  try {
    return JSON.parse(answer.body.toString('utf8'))
  } catch {
    return undefined
  }
}

function yamlOf(text: string): Json | undefined {
  try {
    return parseYaml(text)
  } catch {
    return undefined
  }
}

function messageOf(answer: Answer): string {
  const body = jsonOf(answer)
  const message = isObject(body) ? memberOf(body, 'message') : answer.body.toString('utf8').trim()
  return typeof message === 'string' ? message.slice(0, 200) : ''
}
