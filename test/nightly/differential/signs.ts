/** Predicates of known.ts about a request and the two responses to it. */
import { isMap, isPair, isScalar, parseDocument, visit } from 'yaml'
import { isObject, type Json } from '../../../src/lib/json.ts'
import { Members } from '../fuzz/tree.ts'
import { type Digest, messageOf, reasonOf, statusOf } from './digest.ts'
import { isChange, type Step, sentText } from './step.ts'

export interface Found {
  readonly step: Step
  /** The steps before it. */
  readonly before: readonly Step[]
  readonly ours: Digest
  readonly theirs: Digest
  /** The differences, one line each. */
  readonly places: readonly string[]
}

export interface KnownDifference {
  /** The id in docs/reference/compatibility.md. */
  readonly row: string
  readonly explains: (found: Found) => boolean
}

export function isPatch({ verb }: Step): boolean {
  return verb.endsWith('-patch') || verb === 'apply'
}

export function isYaml({ headers }: Step): boolean {
  return headers['content-type'] === 'application/yaml'
}

/** Or a delete of a collection, which is a list first. */
export function isRead({ verb }: Step): boolean {
  return verb === 'list' || verb === 'watch' || verb === 'delete-collection' || verb === 'get'
}

export function hasQuery({ query }: Step, name: string): boolean {
  return query.some(([given]) => given === name)
}

export function isDone({ status }: Digest): boolean {
  return status === 200 || status === 201
}

export function isRefused({ status }: Digest): boolean {
  return status >= 400
}

export function isClientMistake({ status }: Digest): boolean {
  return status >= 400 && status < 500
}

/** The same code and reason; only the message differs. */
export function isSameRefusal(ours: Digest, theirs: Digest): boolean {
  return ours.status === theirs.status && isRefused(ours) && reasonOf(ours) === reasonOf(theirs)
}

export function isAny(looks: readonly RegExp[], text: string): boolean {
  return looks.some((look) => look.test(text))
}

/** The kind of a tree, or of the lines of a YAML document. */
export function kindOf({ content }: Digest): string {
  if (isObject(content)) return String(content['kind'] ?? '')
  const lines = Array.isArray(content) ? content : []
  return String(lines.find((line) => /^kind: /.test(String(line))) ?? '').replace('kind: ', '')
}

export function isApplyConflict(digest: Digest): boolean {
  return digest.status === 409 && messageOf(digest).startsWith('Apply failed with')
}

/** The fields of an apply conflict, without their owners. */
export function conflictsOf(digest: Digest): readonly string[] {
  const fields = messageOf(digest).matchAll(/^- (.*)$|: (\.\S+)$/gm)
  return [...fields].map(([, listed, single]) => listed ?? single ?? '').sort()
}

export function causesOf(digest: Digest): readonly string[] {
  const details = statusOf(digest)?.['details']
  const causes = isObject(details) ? details['causes'] : undefined
  return Array.isArray(causes) ? causes.map((cause) => JSON.stringify(cause)).sort() : []
}

export function warningsOf({ warning }: Digest): readonly string[] {
  return warning
    .split(', 299 - ')
    .map((text) => text.replace(/^299 - /, ''))
    .filter((text) => text !== '')
    .sort()
}

/** Whether an earlier step wrote the same event through the other group. */
export function isWrittenByOtherGroup({ step, before }: Found): boolean {
  return before.some(
    (earlier) =>
      isChange(earlier) &&
      earlier.group !== step.group &&
      (earlier.at === step.at || sentText(earlier).includes(step.at)),
  )
}

/** Whether the patch sets apiVersion or kind of the event. */
export function isOfVersionOrKind(step: Step): boolean {
  const tree = step.body?.form === 'json' ? step.body.tree : undefined
  if (tree instanceof Members) {
    return tree.entries.some(([name]) => name === 'apiVersion' || name === 'kind')
  }
  return (
    step.verb === 'json-patch' && /"(?:path|from)":"(?:\/apiVersion|\/kind|)"/.test(sentText(step))
  )
}

/** Duplicate names in one object of the body; `isObject`: with an object each time. */
export function repeatedNames(step: Step): readonly { readonly isObject: boolean }[] {
  const found: { readonly isObject: boolean }[] = []
  const document = parseDocument(sentText(step), { uniqueKeys: false, strict: false })
  visit(document, {
    Map(_, { items }) {
      const seen = new Map<unknown, unknown>()
      for (const pair of items) {
        if (!isPair(pair) || !isScalar(pair.key)) continue
        const { value: name } = pair.key
        if (seen.has(name)) {
          found.push({ isObject: isMap(pair.value) && isMap(seen.get(name)) })
        }
        seen.set(name, pair.value)
      }
    },
  })
  return found
}

/** Whether the body has two owners with one uid, which is their merge key. */
export function hasOwnerTwice(step: Step): boolean {
  const [, list = ''] = /"ownerReferences":(\[[^\]]*\])/.exec(sentText(step)) ?? []
  const uids = [...list.matchAll(/"uid":"([^"]*)"/g)].map(([, uid]) => uid)
  return new Set(uids).size < uids.length
}

/** Whether the event in the response has a finalizer twice. */
export function hasFinalizerTwice({ content }: Digest): boolean {
  const metadata = isObject(content) ? content['metadata'] : undefined
  const list = isObject(metadata) ? metadata['finalizers'] : undefined
  return Array.isArray(list) && new Set(list).size < list.length
}

/** The frames of a watch without those that repeat the event of the frame before. */
export function changingFrames({ content }: Digest): readonly Json[] {
  const shown = new Map<string, string>()
  return (Array.isArray(content) ? content : []).filter((frame) => {
    const object = isObject(frame) ? frame['object'] : undefined
    const metadata = isObject(object) ? object['metadata'] : undefined
    const name = isObject(metadata) ? String(metadata['name']) : ''
    const text = JSON.stringify(object)
    const isSame = shown.get(name) === text && isObject(frame) && frame['type'] === 'MODIFIED'
    shown.set(name, text)
    return !isSame
  })
}
