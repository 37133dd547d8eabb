/** Responses reduced to what two servers must have in common. */
import { parse } from 'yaml'
import { isObject, type Json, type JsonObject, memberOf, setMember } from '../../../src/lib/json.ts'
import { normalText, normalTree, type Place } from '../../ci/conformance/normal-form.ts'
import { inOurForm } from '../../ci/conformance/our-form.ts'
import { treeDifferences } from '../../ci/conformance/tree-difference.ts'
import { protobufTree } from '../../support/protobuf-tree.ts'
import type { Answer } from './client.ts'
import { isChange, type Step, sentText } from './step.ts'

export interface Digest {
  readonly status: number
  readonly contentType: string
  readonly warning: string
  /** The body: a tree, the frames of a watch, or lines of YAML or plain text. */
  readonly content: Json
  /** The JSON is pretty-printed. */
  readonly isPretty: boolean
  /** Whether the event has another version than before; undefined where it is unknown. */
  readonly isWritten?: boolean | undefined
}

/** The values that the server has chosen so far. */
export interface Circumstances extends Place {
  readonly ownValues?: ReadonlySet<string>
  readonly isWritten?: boolean | undefined
}

/** A response in normal form: nothing in it depends on time or server. */
export function digestOf(step: Step, answer: Answer, place: Circumstances): Digest {
  const contentType = String(answer.headers['content-type'] ?? '')
  const content = withoutOwn(
    contentOf(step, { ...answer, contentType }, place),
    (text) => (place.ownValues?.has(text) ?? false) || (isCopy(step) && VERSION.test(text)),
  )
  const text = answer.body.subarray(0, 8).toString('latin1')
  return {
    status: answer.status,
    contentType,
    warning: Buffer.from(String(answer.headers['warning'] ?? ''), 'latin1').toString(),
    content: inOrder(step.comparesOwners === true ? content : withoutOwners(content)),
    isPretty: text.startsWith('{\n') || text.startsWith('[\n'),
    isWritten: isChange(step) ? place.isWritten : undefined,
  }
}

/**
 * Names that Kubernetes gives to fields that the caller never sent, the types it does not list, and
 * the columns of its tables, replaced by ours (`caller-field-names`, `allowed-types-are-named` and
 * `tables-have-counts` in docs/reference/compatibility.md).
 */
export function inOurWords(step: Step, digest: Digest): Digest {
  return { ...digest, content: inOurForm(digest.content, step.group === 'core') }
}

export function digestDifferences(ours: Digest, theirs: Digest): readonly string[] {
  return treeDifferences(treeOf(ours), treeOf(theirs))
}

function treeOf({ isWritten = false, ...digest }: Digest): Json {
  return { ...digest, isWritten } as unknown as Json
}

/** The Status of a response, or the one in the last frame of a watch. */
export function statusOf({ content }: Digest): JsonObject | undefined {
  if (isObject(content)) return content['kind'] === 'Status' ? content : undefined
  const last = Array.isArray(content) ? content.at(-1) : undefined
  const object = isObject(last) ? memberOf(last, 'object') : undefined
  return isObject(object) && object['kind'] === 'Status' ? object : undefined
}

export function messageOf(digest: Digest): string {
  return String(statusOf(digest)?.['message'] ?? '')
}

export function reasonOf(digest: Digest): string {
  return String(statusOf(digest)?.['reason'] ?? '')
}

function contentOf(
  step: Step,
  { body, status, contentType }: Answer & { readonly contentType: string },
  place: Place,
): Json {
  const isStream = step.verb === 'watch' && status === 200
  try {
    if (contentType.startsWith('application/vnd.kubernetes.protobuf')) {
      const tree = normalTree(protobufTree(body, isStream), place)
      return isStream ? heard(tree as Json[]) : tree
    }
    if (contentType.startsWith('application/json')) {
      const text = body.toString()
      if (!isStream) return normalTree(JSON.parse(text), place)
      const lines = text.split('\n').filter((line) => line !== '')
      return heard(lines.map((line) => normalTree(JSON.parse(line), place)))
    }
  } catch (error) {
    return `unreadable: ${error}: ${body.toString('latin1').slice(0, 200)}`
  }
  // The lines themselves are compared where events are read.
  if ((status >= 400 || isChange(step)) && contentType.startsWith('application/yaml')) {
    return normalTree(parse(body.toString()), place)
  }
  return normalLines(body.toString(), place)
}

/** Values that are returned as they were sent, and so differ between servers. */
const VERSION_WANTED = /(?<=ResourceVersion in the precondition \()\d+/

/** The other server names owners in random order. */
function inOrder(content: Json): Json {
  const status = isObject(content) && content['kind'] === 'Status' ? content : undefined
  const details = status?.['details']
  if (status?.['reason'] !== 'Conflict' || !isObject(details)) return content
  const message = String(status['message']).replace(VERSION_WANTED, '<rv>')
  const causes = details['causes']
  if (!Array.isArray(causes)) return { ...status, message }
  const sorted = causes.map((cause) => JSON.stringify(cause)).sort()
  return { ...status, message, details: { ...details, causes: sorted } }
}

const VERSION = /^\d{3,}$/

/** Whether it copies a version, which may not be in any earlier response. */
function isCopy(step: Step): boolean {
  return step.verb === 'json-patch' && sentText(step).includes('"from":"/metadata/resourceVersion"')
}

const QUOTED_NUMBER_OR_TIME = /(?<=")\d[\d:TZ-]*(?=")/g

/** A patch can copy the version or a time to any field, and each server has its own. */
function withoutOwn(tree: Json, isOwn: (text: string) => boolean): Json {
  if (Array.isArray(tree)) return tree.map((entry) => withoutOwn(entry, isOwn))
  if (isObject(tree)) {
    const result: JsonObject = {}
    for (const [name, value] of Object.entries(tree)) {
      setMember(result, name, withoutOwn(value, isOwn))
    }
    return result
  }
  if (typeof tree !== 'string') return tree
  if (isOwn(tree)) return '<own>'
  return tree.replaceAll(QUOTED_NUMBER_OR_TIME, (text) => (isOwn(text) ? '<own>' : text))
}

/** The server decides when to send bookmarks, except for the one after the initial events. */
function heard(frames: readonly Json[]): Json[] {
  return frames.filter((frame) => {
    if (!isObject(frame) || frame['type'] !== 'BOOKMARK') return true
    return JSON.stringify(frame).includes('k8s.io/initial-events-end')
  })
}

function withoutOwners(tree: Json): Json {
  if (Array.isArray(tree)) return tree.map(withoutOwners)
  if (!isObject(tree)) return tree
  const result: JsonObject = {}
  for (const [name, value] of Object.entries(tree)) {
    if (name !== 'managedFields') setMember(result, name, withoutOwners(value))
  }
  return result
}

const YAML_RULES: readonly (readonly [RegExp, string])[] = [
  [/^(\s*(?:- )?resourceVersion: )"?[1-9]\d*"?$/, '$1<rv>'],
  [/^(\s*(?:- )?(?:creation|deletion)Timestamp: )"\d{4}-.*Z"$/, '$1<time>'],
  [/^(\s*(?:- )?continue: )[\w-]+$/, '$1<token>'],
]

/** Lines of YAML, without managedFields. */
function normalLines(text: string, place: Place): Json {
  const lines: string[] = []
  let hiddenFrom = -1
  for (const line of normalText(text, place).split('\n')) {
    const indent = line.search(/\S/)
    if (hiddenFrom >= 0 && (indent > hiddenFrom || (indent === hiddenFrom && line[indent] === '-')))
      continue
    hiddenFrom = /^\s*managedFields:/.test(line) ? indent : -1
    if (hiddenFrom >= 0) continue
    lines.push(YAML_RULES.reduce((left, [looks, becomes]) => left.replace(looks, becomes), line))
  }
  return lines
}
