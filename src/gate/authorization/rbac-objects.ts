/** Roles and bindings as Kubernetes writes them: read, and checked as strictly as its API does. */
import type { Labels } from '../../api/compact-labels.ts'
import { type LabelSelector, parseLabelSelector } from '../../api/label-selector.ts'
import { labelValueProblems, qualifiedNameProblems } from '../../api/names.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import { serviceAccountUser } from '../user.ts'
import type { PolicyRule } from './rule-set.ts'

export interface Role {
  readonly kind: 'Role'
  /** Undefined for a ClusterRole. */
  readonly namespace: string | undefined
  readonly name: string
  readonly labels: Labels
  readonly rules: readonly PolicyRule[]
  /** With these, the rules of the cluster roles that one of them matches take the place of its own. */
  readonly selectors: readonly LabelSelector[] | undefined
}

export interface Binding {
  readonly kind: 'Binding'
  /** Undefined for a ClusterRoleBinding. */
  readonly namespace: string | undefined
  readonly name: string
  readonly role: { readonly isCluster: boolean; readonly name: string }
  readonly subjects: readonly Subject[]
}

/** Service accounts are users by another name. */
export interface Subject {
  readonly kind: 'User' | 'Group'
  readonly name: string
  /** Of a service account: its own name. */
  readonly account?: { readonly namespace: string; readonly name: string }
}

export type PolicyObject = Role | Binding

/** What no two objects have in common: `ClusterRole name`, `RoleBinding ns/name`. */
export function shownObject({
  kind,
  namespace,
  name,
}: Pick<PolicyObject, 'kind' | 'namespace' | 'name'>): string {
  const shownKind = kind === 'Role' ? 'Role' : 'RoleBinding'
  return namespace === undefined
    ? `Cluster${shownKind} ${name}`
    : `${shownKind} ${namespace}/${name}`
}

/** What is wrong, and in which field. */
export class PolicyMistake extends Error {
  override readonly name = 'PolicyMistake'

  constructor(field: string, why: string) {
    super(field === '' ? why : `${field}: ${why}`)
  }
}

export const RBAC_GROUP = 'rbac.authorization.k8s.io'
const API_VERSION = `${RBAC_GROUP}/v1`
const KINDS: readonly Json[] = ['Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding']

/** An object of a document, which may be a list of them. */
export interface FoundObject {
  /** Its place in the document: empty, or `items[2].`. */
  readonly at: string
  readonly tree: JsonObject
}

/** Throws a PolicyMistake for a document that is neither an object nor a list. */
export function* objectsIn(tree: Json): Generator<FoundObject> {
  if (!isObject(tree)) throw new PolicyMistake('', 'not an object')
  const kind = memberOf(tree, 'kind')
  const item = typeof kind === 'string' ? /^(.*)List$/.exec(kind)?.[1] : undefined
  if (item === undefined) {
    yield { at: '', tree }
    return
  }
  const inherited = item === '' ? {} : { apiVersion: memberOf(tree, 'apiVersion'), kind: item }
  for (const [index, entry] of listOf(tree, 'items', '').entries()) {
    const at = `items[${index}]`
    if (!isObject(entry)) throw new PolicyMistake(at, 'not an object')
    yield { at: `${at}.`, tree: { ...inherited, ...entry } as JsonObject }
  }
}

/** Throws a PolicyMistake for the first thing that is wrong with it. */
export function readPolicyObject({ tree, at }: FoundObject): PolicyObject {
  const apiVersion = memberOf(tree, 'apiVersion')
  const kind = memberOf(tree, 'kind') ?? ''
  if (!KINDS.includes(kind)) {
    throw new PolicyMistake(`${at}kind`, `${shown(kind)} is none of ${KINDS.join(', ')}`)
  }
  if (apiVersion !== API_VERSION)
    throw new PolicyMistake(`${at}apiVersion`, `must be ${API_VERSION}`)
  const isCluster = kind === 'ClusterRole' || kind === 'ClusterRoleBinding'
  const meta = readMeta(tree, at, isCluster)
  return kind === 'Role' || kind === 'ClusterRole'
    ? readRole(tree, at, meta)
    : readBinding(tree, at, meta)
}

interface Meta {
  readonly namespace: string | undefined
  readonly name: string
  readonly labels: Labels
}

function readMeta(tree: JsonObject, at: string, isCluster: boolean): Meta {
  const metadata = memberOf(tree, 'metadata')
  if (!isObject(metadata)) throw new PolicyMistake(`${at}metadata`, 'is missing')
  const place = `${at}metadata.`
  const name = requiredText(metadata, 'name', place)
  if (name === '.' || name === '..' || /[/%]/.test(name)) {
    throw new PolicyMistake(`${place}name`, 'must not be . or .. nor contain / or %')
  }
  const namespace = textOf(metadata, 'namespace', place)
  if (isCluster && namespace !== '') {
    throw new PolicyMistake(`${place}namespace`, 'this kind is in no namespace')
  }
  if (!isCluster && namespace === '') {
    throw new PolicyMistake(`${place}namespace`, 'is missing')
  }
  const labels = labelsOf(metadata, 'labels', place)
  return { name, labels, namespace: isCluster ? undefined : namespace }
}

function readRole(tree: JsonObject, at: string, meta: Meta): Role {
  const isCluster = meta.namespace === undefined
  onlyMembers(tree, at, [
    'apiVersion',
    'kind',
    'metadata',
    'rules',
    ...(isCluster ? ['aggregationRule'] : []),
  ])
  const rules = listOf(tree, 'rules', at).map((rule, index) =>
    readRule(rule, `${at}rules[${index}]`, isCluster),
  )
  return { kind: 'Role', ...meta, rules, selectors: readAggregation(tree, at) }
}

function readRule(tree: Json, at: string, isCluster: boolean): PolicyRule {
  if (!isObject(tree)) throw new PolicyMistake(at, 'not an object')
  const place = `${at}.`
  onlyMembers(tree, place, ['verbs', 'apiGroups', 'resources', 'resourceNames', 'nonResourceURLs'])
  const rule: PolicyRule = {
    verbs: textsOf(tree, 'verbs', place),
    apiGroups: textsOf(tree, 'apiGroups', place),
    resources: textsOf(tree, 'resources', place),
    resourceNames: textsOf(tree, 'resourceNames', place),
    nonResourceUrls: textsOf(tree, 'nonResourceURLs', place),
  }
  if (rule.verbs.length === 0) throw new PolicyMistake(`${place}verbs`, 'must not be empty')
  if (rule.nonResourceUrls.length > 0) {
    if (!isCluster) {
      throw new PolicyMistake(`${place}nonResourceURLs`, 'only a ClusterRole can be about paths')
    }
    const others = [rule.apiGroups, rule.resources, rule.resourceNames]
    if (others.some((list) => list.length > 0)) {
      throw new PolicyMistake(at, 'is about resources and about paths: make two rules of it')
    }
    return rule
  }
  if (rule.apiGroups.length === 0) throw new PolicyMistake(`${place}apiGroups`, 'must not be empty')
  if (rule.resources.length === 0) throw new PolicyMistake(`${place}resources`, 'must not be empty')
  return rule
}

function readAggregation(tree: JsonObject, at: string): readonly LabelSelector[] | undefined {
  const aggregation = memberOf(tree, 'aggregationRule')
  if (aggregation === undefined || aggregation === null) return undefined
  const place = `${at}aggregationRule`
  if (!isObject(aggregation)) throw new PolicyMistake(place, 'not an object')
  onlyMembers(aggregation, `${place}.`, ['clusterRoleSelectors'])
  const selectors = listOf(aggregation, 'clusterRoleSelectors', `${place}.`)
  if (selectors.length === 0) {
    throw new PolicyMistake(`${place}.clusterRoleSelectors`, 'must not be empty')
  }
  return selectors.map((selector, index) =>
    readSelector(selector, `${place}.clusterRoleSelectors[${index}]`),
  )
}

function readSelector(tree: Json, at: string): LabelSelector {
  if (!isObject(tree)) throw new PolicyMistake(at, 'not an object')
  onlyMembers(tree, `${at}.`, ['matchLabels', 'matchExpressions'])
  const labels = Object.entries(labelsOf(tree, 'matchLabels', `${at}.`))
  const terms = labels.map(([key, value]) => `${key}=${value}`)
  for (const [index, entry] of listOf(tree, 'matchExpressions', `${at}.`).entries()) {
    terms.push(readExpression(entry, `${at}.matchExpressions[${index}]`))
  }
  return parseLabelSelector(terms.join(','))
}

/** In the language of selectors, which says the same. */
function readExpression(tree: Json, at: string): string {
  if (!isObject(tree)) throw new PolicyMistake(at, 'not an object')
  const place = `${at}.`
  onlyMembers(tree, place, ['key', 'operator', 'values'])
  const key = requiredText(tree, 'key', place)
  const values = textsOf(tree, 'values', place)
  checkLabel(key, values, place)
  const operator = textOf(tree, 'operator', place)
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) throw new PolicyMistake(`${place}values`, 'must not be empty')
      return `${key} ${operator.toLowerCase()} (${values.join(',')})`
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) throw new PolicyMistake(`${place}values`, `must be empty: ${operator}`)
      return operator === 'Exists' ? key : `!${key}`
    default:
      throw new PolicyMistake(`${place}operator`, 'must be In, NotIn, Exists or DoesNotExist')
  }
}

function checkLabel(key: string, values: readonly string[], at: string): void {
  const [problem] = [...qualifiedNameProblems(key), ...values.flatMap(labelValueProblems)]
  if (problem !== undefined) throw new PolicyMistake(`${at}${key.slice(0, SHOWN_MAX)}`, problem)
}

function readBinding(tree: JsonObject, at: string, { namespace, name }: Meta): Binding {
  onlyMembers(tree, at, ['apiVersion', 'kind', 'metadata', 'subjects', 'roleRef'])
  const roleRef = memberOf(tree, 'roleRef')
  if (!isObject(roleRef)) throw new PolicyMistake(`${at}roleRef`, 'is missing')
  const place = `${at}roleRef.`
  onlyMembers(roleRef, place, ['apiGroup', 'kind', 'name'])
  checkGroup(roleRef, place, RBAC_GROUP)
  const kind = textOf(roleRef, 'kind', place)
  const kinds = namespace === undefined ? ['ClusterRole'] : ['Role', 'ClusterRole']
  if (!kinds.includes(kind))
    throw new PolicyMistake(`${place}kind`, `must be ${kinds.join(' or ')}`)
  const role = { isCluster: kind === 'ClusterRole', name: requiredText(roleRef, 'name', place) }
  const subjects = listOf(tree, 'subjects', at).map((subject, index) =>
    readSubject(subject, `${at}subjects[${index}]`, namespace),
  )
  return { kind: 'Binding', namespace, name, role, subjects }
}

function readSubject(tree: Json, at: string, namespace: string | undefined): Subject {
  if (!isObject(tree)) throw new PolicyMistake(at, 'not an object')
  const place = `${at}.`
  onlyMembers(tree, place, ['kind', 'apiGroup', 'name', 'namespace'])
  const kind = textOf(tree, 'kind', place)
  const name = requiredText(tree, 'name', place)
  const own = textOf(tree, 'namespace', place)
  if (kind === 'User' || kind === 'Group') {
    checkGroup(tree, place, RBAC_GROUP)
    if (own !== '') throw new PolicyMistake(`${place}namespace`, `a ${kind} is in no namespace`)
    return { kind, name }
  }
  if (kind !== 'ServiceAccount') {
    throw new PolicyMistake(`${place}kind`, 'must be User, Group or ServiceAccount')
  }
  checkGroup(tree, place, '')
  const home = own === '' ? namespace : own
  if (home === undefined) throw new PolicyMistake(`${place}namespace`, 'is missing')
  const account = { namespace: home, name }
  return { kind: 'User', name: serviceAccountUser(home, name), account }
}

/** Empty stands for the one that is meant. */
function checkGroup(tree: JsonObject, at: string, expected: string): void {
  const group = textOf(tree, 'apiGroup', at)
  if (group === '' || group === expected) return
  throw new PolicyMistake(
    `${at}apiGroup`,
    expected === '' ? 'must be empty' : `must be ${expected}`,
  )
}

/** A misspelt name could make a rule say more than was meant, so it is a mistake. */
function onlyMembers(tree: JsonObject, at: string, known: readonly string[]): void {
  const unknown = Object.keys(tree).find((name) => !known.includes(name))
  if (unknown !== undefined) {
    throw new PolicyMistake(`${at}${unknown.slice(0, SHOWN_MAX)}`, 'is no field that is known here')
  }
}

function requiredText(tree: JsonObject, name: string, at: string): string {
  const text = textOf(tree, name, at)
  if (text === '') throw new PolicyMistake(`${at}${name}`, 'is missing')
  return text
}

/** Empty when it is not there. */
function textOf(tree: JsonObject, name: string, at: string): string {
  const value = memberOf(tree, name) ?? ''
  if (typeof value !== 'string') {
    throw new PolicyMistake(`${at}${name}`, `${shown(value)} is not a text: put it in quotes`)
  }
  return value
}

function textsOf(tree: JsonObject, name: string, at: string): readonly string[] {
  return listOf(tree, name, at).map((value, index) => {
    if (typeof value === 'string') return value
    const why = `${shown(value)} is not a text: put it in quotes`
    throw new PolicyMistake(`${at}${name}[${index}]`, why)
  })
}

/** Empty when it is not there. */
function listOf(tree: JsonObject, name: string, at: string): readonly Json[] {
  const value = memberOf(tree, name) ?? []
  if (!Array.isArray(value)) throw new PolicyMistake(`${at}${name}`, 'must be a list')
  return value
}

function labelsOf(tree: JsonObject, name: string, at: string): Labels {
  const labels = memberOf(tree, name) ?? {}
  if (!isObject(labels)) throw new PolicyMistake(`${at}${name}`, 'not an object')
  for (const [key, value] of Object.entries(labels)) {
    if (typeof value !== 'string') {
      throw new PolicyMistake(
        `${at}${name}.${key}`,
        `${shown(value)} is not a text: put it in quotes`,
      )
    }
    checkLabel(key, [value], `${at}${name}.`)
  }
  return labels as Labels
}

const SHOWN_MAX = 80

function shown(value: Json): string {
  return JSON.stringify(value).slice(0, SHOWN_MAX)
}
