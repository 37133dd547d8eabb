/** Makes an input from a seed and a number: the same two make the same input. */
import { Random } from '../../../support/random.ts'
import type { FuzzInput, Kind } from '../input.ts'
import { KINDS } from '../input.ts'
import { Members, type Tree, treeText } from '../tree.ts'
import { spoiled } from './bytes.ts'
import { COLLECTION, mutate, STANDING, validEvent } from './events.ts'
import { acceptHeader, contentType, headerText } from './headers.ts'
import { HEAVY, heavyOf } from './heavy.ts'
import { jsonPatch, mergePatch, strategicPatch } from './patches.ts'
import { pair, queryText } from './queries.ts'
import { continueToken, fieldSelector, labelSelector } from './selectors.ts'
import { hostileValue } from './values.ts'
import { yamlText } from './yaml-texts.ts'

/** One in so many is of the maximum size. */
const HEAVY_EVERY = 4000
/** How often a write is real, not a dry run. */
const WRITTEN = 0.1

export interface GenerateOptions {
  readonly seed: number
  /** All kinds unless one is named. */
  readonly kind?: Kind | undefined
}

export function inputAt({ seed, kind }: GenerateOptions, index: number): FuzzInput {
  const random = new Random(
    Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35),
  )
  random.next()
  if (random.below(HEAVY_EVERY) === 0) {
    const heavies = HEAVY.filter(
      (heavy) => heavy.needsGreat !== true && (kind === undefined || heavy.kind === kind),
    )
    const heavy = heavies[random.below(heavies.length)]
    if (heavy !== undefined) return heavyOf(heavy, random)
  }
  return MAKERS[kind ?? random.pick(KINDS)](random, index)
}

type Maker = (random: Random, index: number) => FuzzInput

const MAKERS: Readonly<Record<Kind, Maker>> = {
  body,
  patch,
  selector,
  token,
  query,
  yaml,
  accept,
  'delete-options': deleteOptions,
}

const json = { 'content-type': 'application/json' }

function body(random: Random, index: number): FuzzInput {
  const tree = random.chance(0.02)
    ? hostileValue(random)
    : mutate(random, validEvent(random, `e-${index}`))
  const sent = { headers: json, body: spoiled(random, treeText(tree), 0.15) }
  return { kind: 'body', about: 'mutated event', ...place(random, index), ...sent }
}

function yaml(random: Random, index: number): FuzzInput {
  const tree = mutate(random, validEvent(random, `e-${index}`))
  const headers = {
    'content-type': 'application/yaml',
    ...(random.chance(0.3) ? { accept: 'application/yaml' } : {}),
  }
  const text = spoiled(random, yamlText(random, tree), 0.15)
  return { kind: 'yaml', about: 'mutated event', ...place(random, index), headers, body: text }
}

/** The path that an event is sent to, with a few options. */
function place(random: Random, index: number): Pick<FuzzInput, 'method' | 'target'> {
  const isPut = random.chance(0.25)
  const isWritten = random.chance(WRITTEN)
  const name = isWritten || random.chance(0.5) ? `e-${index}` : standing(random)
  const query = [
    ...(isWritten ? [] : ['dryRun=All']),
    ...(random.chance(0.3)
      ? [pair('fieldValidation', random.pick(['Strict', 'Ignore', 'Warn']))]
      : []),
  ].join('&')
  const path = isPut ? `${COLLECTION}/${name}` : COLLECTION
  return { method: isPut ? 'PUT' : 'POST', target: `${path}?${query}` }
}

/** The path of an event that may be changed: it is created before the request. */
function ownOf(random: Random, index: number): string {
  return `${COLLECTION}/own-${standing(random)}-${index}`
}

function standing(random: Random): string {
  return [...STANDING.keys()][random.below(STANDING.size)] ?? ''
}

function patch(random: Random, index: number): FuzzInput {
  const [type, tree] = patchOf(random)
  const isWritten = random.chance(WRITTEN)
  const strict = random.chance(0.2) ? '&fieldValidation=Strict' : ''
  return {
    kind: 'patch',
    about: type,
    method: 'PATCH',
    target: isWritten
      ? `${ownOf(random, index)}?${strict}`
      : `${COLLECTION}/${standing(random)}?dryRun=All${strict}`,
    headers: { 'content-type': `application/${type}+json` },
    body: spoiled(random, treeText(tree), 0.1),
  }
}

function patchOf(random: Random): readonly [string, Tree] {
  switch (random.below(3)) {
    case 0:
      return ['json-patch', jsonPatch(random)]
    case 1:
      return ['merge-patch', mergePatch(random)]
    default:
      return ['strategic-merge-patch', strategicPatch(random)]
  }
}

function selector(random: Random): FuzzInput {
  const pairs = [
    ...(random.chance(0.7) ? [pair('labelSelector', labelSelector(random))] : []),
    ...(random.chance(0.5) ? [pair('fieldSelector', fieldSelector(random))] : []),
    ...(random.chance(0.2) ? ['limit=2'] : []),
  ]
  return get('selector', 'selectors', `${COLLECTION}?${pairs.join('&')}`)
}

function token(random: Random): FuzzInput {
  const path = random.chance(0.5) ? COLLECTION : '/apis/events.k8s.io/v1/events'
  const limit = random.chance(0.7) ? '&limit=2' : ''
  return get('token', 'continue', `${path}?${pair('continue', continueToken(random))}${limit}`)
}

function get(kind: Kind, about: string, target: string): FuzzInput {
  return { kind, about, method: 'GET', target, headers: {}, body: Buffer.alloc(0) }
}

const PATHS = [
  COLLECTION,
  `${COLLECTION}/base-0`,
  '/apis/events.k8s.io/v1/events',
  '/apis/events.k8s.io/v1/watch/events',
  '/apis/events.k8s.io/v1/watch/namespaces/fuzz/events/base-0',
  '/apis/events.k8s.io/v1/namespaces/fuzz/events/',
  '/apis/events.k8s.io/v1/namespaces//events',
  '/apis/events.k8s.io/v1/namespaces/fuzz/events/a/b',
  '/apis/events.k8s.io/v1/',
  '/apis/events.k8s.io/v1/namespaces/__proto__/events/constructor',
  '/apis/events.k8s.io/v1/namespaces/%2e%2e/events/%2f',
  '/apis/events.k8s.io/v1/namespaces/%00/events/%C3%A9',
] as const

function query(random: Random, index: number): FuzzInput {
  const method = random.pick([
    'GET',
    'GET',
    'GET',
    'HEAD',
    'POST',
    'PUT',
    'PATCH',
    'DELETE',
    'OPTIONS',
    'constructor',
  ])
  const text = queryText(random)
  const isChange = ['POST', 'PUT', 'PATCH', 'DELETE'].includes(method)
  const path = isChange && method !== 'POST' ? ownOf(random, index) : random.pick(PATHS)
  const tree = method === 'PATCH' ? new Members() : validEvent(random, `e-${index}`)
  return {
    kind: 'query',
    about: 'options',
    method,
    target: `${path}?${text}`,
    headers: method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : json,
    body: isChange && method !== 'DELETE' ? Buffer.from(treeText(tree)) : Buffer.alloc(0),
  }
}

function accept(random: Random, index: number): FuzzInput {
  const method = random.pick(['GET', 'GET', 'POST', 'PATCH', 'DELETE'])
  const path = method === 'POST' || random.chance(0.5) ? COLLECTION : `${COLLECTION}/base-1`
  const options = method === 'GET' ? queryText(random, 2) : 'dryRun=All'
  const tree = method === 'PATCH' ? new Members() : validEvent(random, `e-${index}`)
  return {
    kind: 'accept',
    about: 'headers',
    method,
    target: `${path}?${options}`,
    headers: {
      accept: acceptHeader(random),
      ...(random.chance(0.5) ? { 'content-type': contentType(random) } : {}),
      ...(random.chance(0.1)
        ? { 'user-agent': random.pick(['curl/8', 'Mozilla/5.0', headerText(random)]) }
        : {}),
      ...(random.chance(0.1) ? { 'audit-id': headerText(random) } : {}),
    },
    body: method === 'GET' || method === 'DELETE' ? Buffer.alloc(0) : Buffer.from(treeText(tree)),
  }
}

function deleteOptions(random: Random, index: number): FuzzInput {
  const tree = mutate(
    random,
    Members.of({
      kind: 'DeleteOptions',
      apiVersion: random.pick(['v1', 'meta.k8s.io/v1', '']),
      ...(random.chance(0.3) ? { propagationPolicy: 'Background' } : {}),
      ...(random.chance(0.2) ? { orphanDependents: false } : {}),
      ...(random.chance(0.3)
        ? { preconditions: Members.of({ uid: 'u', resourceVersion: '1' }) }
        : {}),
      ...(random.chance(0.2) ? { dryRun: ['All'] } : {}),
      ...(random.chance(0.2) ? { gracePeriodSeconds: 0 } : {}),
    }),
  )
  const isYaml = random.chance(0.2)
  const isWritten = random.chance(WRITTEN)
  const path = random.chance(0.7) ? `${COLLECTION}/${standing(random)}` : COLLECTION
  return {
    kind: 'delete-options',
    about: 'options in the body',
    method: 'DELETE',
    target: isWritten ? `${ownOf(random, index)}?` : `${path}?dryRun=All`,
    headers: isYaml ? { 'content-type': 'application/yaml' } : json,
    body: spoiled(random, isYaml ? yamlText(random, tree) : treeText(tree), 0.1),
  }
}
