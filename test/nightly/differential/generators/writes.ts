/** Requests that change events. */
import { StructDecoder } from '../../../../src/codec/struct/struct-decoding.ts'
import type { JsonObject } from '../../../../src/lib/json.ts'
import type { Random } from '../../../support/random.ts'
import { Members, Raw, type Tree, treeText } from '../../fuzz/tree.ts'
import { type Body, type GroupName, type Step, typeOf } from '../step.ts'
import { anyField, changeMetadata, goodEvent, metadataOf, setMember, unusual } from './events.ts'
import { annotations, finalizers, labels, NAMES, owner, owners, text } from './values.ts'
import { yamlText } from './yaml.ts'

export type Query = [string, string][]

const PROTOBUF = 'application/vnd.kubernetes.protobuf'

/** Ordinary events, so that there is something to read and to change. */
export function goodCreate(random: Random, group: GroupName, name: string): Step {
  return {
    verb: 'create',
    group,
    at: '',
    query: [],
    headers: { 'content-type': 'application/json' },
    body: { form: 'json', tree: goodEvent(random, group, name) },
  }
}

export function create(random: Random, group: GroupName): Step {
  const tree = unusual(random, group, goodEvent(random, group, random.pick(NAMES)))
  return { verb: 'create', group, at: '', query: writeQuery(random), ...sent(random, group, tree) }
}

export function update(random: Random, group: GroupName): Step {
  const name = random.pick(NAMES)
  const event = goodEvent(random, group, name)
  if (random.chance(0.6)) {
    setMember(
      metadataOf(event),
      'resourceVersion',
      random.pick([`@{rv ${name}}`, `@{old ${name}}`]),
    )
  }
  const tree = random.chance(0.7) ? unusual(random, group, event) : event
  return {
    verb: 'update',
    group,
    at: name,
    query: writeQuery(random),
    ...sent(random, group, tree),
  }
}

/** Encodes mostly JSON, sometimes YAML, or protobuf where the types of the tree allow it. */
function sent(random: Random, group: GroupName, tree: Members): Pick<Step, 'headers' | 'body'> {
  const accept = answerForm(random, 0.1)
  const die = random.next()
  if (die < 0.2) {
    const body: Body = { form: 'text', text: yamlText(random, tree) }
    return { headers: { 'content-type': 'application/yaml', ...accept }, body }
  }
  const message = die < 0.35 ? asMessage(tree, group) : undefined
  if (message !== undefined) {
    const body: Body = { form: 'event-message', event: message }
    return { headers: { 'content-type': PROTOBUF, ...accept }, body }
  }
  if (die < 0.37) {
    const body: Body = { form: 'json', tree: random.pick<Tree>([null, [], 'x', 1, new Raw('{')]) }
    return { headers: { 'content-type': 'application/json', ...accept }, body }
  }
  const type = random.chance(0.97)
    ? 'application/json'
    : random.pick(['text/plain', 'application/json; charset=utf-8', 'APPLICATION/JSON', '*/*'])
  return { headers: { 'content-type': type, ...accept }, body: { form: 'json', tree } }
}

/** Undefined when a member has another type than its field, which protobuf cannot encode. */
function asMessage(tree: Members, group: GroupName): JsonObject | undefined {
  try {
    const decoder = new StructDecoder(new Set(['apiVersion', 'kind']), undefined)
    return decoder.struct(typeOf(group), JSON.parse(treeText(tree)), '')
  } catch {
    return undefined
  }
}

const POINTERS = [
  '/metadata/labels',
  '/metadata/labels/app',
  '/metadata/labels/app',
  '/metadata/annotations',
  '/metadata/annotations/a',
  '/metadata/annotations/example.com~1b',
  '/metadata/finalizers',
  '/metadata/finalizers/0',
  '/metadata/finalizers/-',
  '/metadata/finalizers/1',
  '/metadata/finalizers/-1',
  '/metadata/finalizers/00',
  '/metadata/ownerReferences',
  '/metadata/ownerReferences/-',
  '/metadata/ownerReferences/0',
  '/metadata/ownerReferences/0/name',
  '/metadata/managedFields',
  '/metadata/resourceVersion',
  '/metadata/uid',
  '/metadata/name',
  '/metadata/namespace',
  '/metadata/creationTimestamp',
  '/metadata/bogus',
  '/metadata',
  '/series',
  '/series/count',
  '/reason',
  '/note',
  '/message',
  '/type',
  '/count',
  '/related',
  '/apiVersion',
  '/kind',
  '/bogus',
  '/',
  '',
  'reason',
  '/metadata/labels/~2',
  '/metadata/~0labels',
] as const

export function jsonPatch(random: Random, group: GroupName): Step {
  const operations: Tree = Array.from({ length: 1 + random.below(3) }, () => operation(random))
  const tree = random.chance(0.03)
    ? random.pick<Tree>([new Members(), 'x', [], [null], [1], null])
    : operations
  return patch(random, { verb: 'json-patch', group, tree })
}

function operation(random: Random): Tree {
  const op = random.pick(['add', 'add', 'replace', 'replace', 'remove', 'test', 'move', 'copy'])
  const members: [string, Tree][] = [
    ['op', random.chance(0.98) ? op : random.pick(['Add', '', 'bogus'])],
    ['path', random.pick(POINTERS)],
  ]
  if (op === 'move' || op === 'copy') members.push(['from', random.pick(POINTERS)])
  else if (op !== 'remove' && random.chance(0.97)) members.push(['value', operationValue(random)])
  if (random.chance(0.03)) members.push([random.pick(['bogus', 'op', 'value']), 'x'])
  return new Members(members)
}

function operationValue(random: Random): Tree {
  return random.pick<() => Tree>([
    () => text(random),
    () => text(random),
    () => labels(random),
    () => finalizers(random),
    () => owners(random),
    () => owner(random),
    () => random.pick<Tree>([null, 1, true, [], new Members(), 'example.com/a', 'v']),
    () => Members.of({ count: 2, lastObservedTime: '2026-11-15T08:31:00.000000Z' }),
  ])()
}

export function mergePatch(random: Random, group: GroupName): Step {
  return patch(random, { verb: 'merge-patch', group, tree: mergeTree(random, group) })
}

export function strategicPatch(random: Random, group: GroupName): Step {
  const tree = mergeTree(random, group)
  if (tree instanceof Members && random.chance(0.6)) {
    const metadata = metadataOf(tree)
    for (let count = 1 + random.below(2); count > 0; count--)
      setMember(metadata, ...directive(random))
  }
  return patch(random, { verb: 'strategic-patch', group, tree })
}

function mergeTree(random: Random, group: GroupName): Tree {
  if (random.chance(0.03)) return random.pick<Tree>([[], null, 'x', 1, new Raw('{'), new Members()])
  const tree = new Members()
  for (let count = 1 + random.below(2); count > 0; count--) {
    const die = random.next()
    if (die < 0.3) {
      const [name, value] = anyField(random, group)
      setMember(tree, name, random.chance(0.2) ? null : value)
    } else if (die < 0.92) changeMetadata(random, metadataOf(tree))
    else {
      const name = random.pick(['bogus', 'Reason', 'apiVersion', 'kind'])
      setMember(tree, name, random.pick<Tree>(['x', 'v1', 'events.k8s.io/v1', 'Event', null]))
    }
  }
  return tree
}

/** Directives of a strategic merge patch; only valid ones. */
function directive(random: Random): [string, Tree] {
  const named = (uid: string, more: Record<string, Tree> = {}): Members =>
    Members.of({ uid, ...more })
  return random.pick<() => [string, Tree]>([
    () => ['finalizers', finalizers(random)],
    () => [
      '$deleteFromPrimitiveList/finalizers',
      random.pick<Tree>([['example.com/a'], ['x'], []]),
    ],
    () => [
      '$setElementOrder/finalizers',
      random.pick<Tree>([['example.com/b', 'example.com/a'], ['example.com/a'], []]),
    ],
    () => ['ownerReferences', [named('u1', { $patch: 'delete' })]],
    () => ['ownerReferences', [Members.of({ $patch: 'replace' }), owner(random)]],
    () => ['ownerReferences', [named('u1', { name: 'renamed' })]],
    () => ['ownerReferences', [named('u2', { controller: null })]],
    () => ['ownerReferences', [Members.of({ name: 'x' })]],
    () => ['$setElementOrder/ownerReferences', [named('u2'), named('u1')]],
    () => ['labels', Members.of({ $patch: random.pick(['replace', 'delete', 'merge']), app: 'r' })],
    () => ['labels', Members.of({ $patch: 'delete' })],
    () => ['labels', Members.of({ app: null })],
    () => ['annotations', Members.of({ a: null, example: 'x' })],
    () => ['$retainKeys', ['labels', 'name']],
    () => ['$patch', random.pick(['merge', 'replace'])],
  ])()
}

const PATCH_TYPES = {
  'json-patch': 'application/json-patch+json',
  'merge-patch': 'application/merge-patch+json',
  'strategic-patch': 'application/strategic-merge-patch+json',
} as const

function patch(
  random: Random,
  step: { readonly verb: keyof typeof PATCH_TYPES; readonly group: GroupName; readonly tree: Tree },
): Step {
  const { verb, group, tree } = step
  return {
    verb,
    group,
    at: random.pick(NAMES),
    query: writeQuery(random),
    headers: { 'content-type': PATCH_TYPES[verb], ...answerForm(random, 0.05) },
    body: { form: 'json', tree },
  }
}

export function apply(random: Random, group: GroupName): Step {
  const name = random.pick(NAMES)
  const whole = goodEvent(random, group, name)
  if (random.chance(0.4)) {
    whole.entries = whole.entries.filter(
      ([member]) => member === 'apiVersion' || member === 'kind' || random.chance(0.6),
    )
  }
  const metadata = metadataOf(whole)
  metadata.entries = [['name', name]]
  if (random.chance(0.4)) setMember(metadata, 'labels', labels(random))
  if (random.chance(0.25)) setMember(metadata, 'finalizers', finalizers(random))
  if (random.chance(0.25)) setMember(metadata, 'ownerReferences', owners(random))
  if (random.chance(0.2)) setMember(metadata, 'annotations', annotations(random))
  if (random.chance(0.1)) unusual(random, group, whole)
  const query: Query = []
  if (random.chance(0.96)) query.push(['fieldManager', random.pick(['m1', 'm2', 'm3'])])
  if (random.chance(0.5)) query.push(['force', random.pick(['true', 'true', 'true', 'false', '1'])])
  if (random.chance(0.1)) query.push(['dryRun', 'All'])
  if (random.chance(0.1)) query.push(['fieldValidation', random.pick(['Strict', 'Warn', 'Ignore'])])
  const body: Body = random.chance(0.3)
    ? { form: 'text', text: yamlText(random, whole) }
    : { form: 'json', tree: whole }
  const headers = { 'content-type': 'application/apply-patch+yaml' }
  return { verb: 'apply', group, at: name, query, headers, body }
}

function writeQuery(random: Random): Query {
  const query: Query = []
  if (random.chance(0.15)) {
    const values = ['Strict', 'Strict', 'Warn', 'Ignore', '', 'strict', 'bogus'] as const
    query.push(['fieldValidation', random.pick(values)])
  }
  if (random.chance(0.06)) query.push(['dryRun', random.pick(['All', 'All', 'bad', ''])])
  if (random.chance(0.05)) {
    query.push(['fieldManager', random.pick(['m1', '', 'x'.repeat(128), 'x'.repeat(129), 'é'])])
  }
  if (random.chance(0.03)) query.push(['pretty', random.pick(['true', '1', '0'])])
  if (random.chance(0.02)) query.push(['force', 'true'])
  if (random.chance(0.02)) query.push(['bogus', '1'])
  return query
}

const ANSWERS = [
  'application/json',
  'application/yaml',
  PROTOBUF,
  PROTOBUF,
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'text/html',
  '*/*',
] as const

export function answerForm(random: Random, chance: number): Record<string, string> {
  return random.chance(chance) ? { accept: random.pick(ANSWERS) } : {}
}
