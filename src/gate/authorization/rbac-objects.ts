/** Reads roles and bindings in the format of Kubernetes, with the validation of its API. */
import type { Labels } from '../../api/selectors/compact-labels.ts'
import { type LabelSelector, parseLabelSelector } from '../../api/selectors/label-selector.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import { serviceAccountUser } from '../user.ts'
import {
  checkLabel,
  labelsOf,
  listOf,
  onlyMembers,
  PolicyMistake,
  quoteValue,
  requiredText,
  textOf,
  textsOf,
} from './policy-fields.ts'
import type { PolicyRule } from './rule-set.ts'

export interface Role {
  readonly kind: 'Role'
  /** Undefined for a ClusterRole. */
  readonly namespace: string | undefined
  readonly name: string
  readonly labels: Labels
  readonly rules: readonly PolicyRule[]
  /** Of an aggregated role: rules of all cluster roles that match one of these replace its own. */
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

/** A service account is a user with a special name. */
export interface Subject {
  readonly kind: 'User' | 'Group'
  readonly name: string
  /** Of a service account. */
  readonly account?: { readonly namespace: string; readonly name: string }
}

export type PolicyObject = Role | Binding

/** Unique among all objects: `ClusterRole name`, `RoleBinding ns/name`. */
export function fullName({
  kind,
  namespace,
  name,
}: Pick<PolicyObject, 'kind' | 'namespace' | 'name'>): string {
  const fullKind = kind === 'Role' ? 'Role' : 'RoleBinding'
  return namespace === undefined ? `Cluster${fullKind} ${name}` : `${fullKind} ${namespace}/${name}`
}

export const RBAC_GROUP = 'rbac.authorization.k8s.io'
const API_VERSION = `${RBAC_GROUP}/v1`
const KINDS: readonly Json[] = ['Role', 'ClusterRole', 'RoleBinding', 'ClusterRoleBinding']

/** An object of a document. A document may have a list of objects. */
export interface FoundObject {
  /** Its path in the document: empty, or `items[2].`. */
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

/** Throws a PolicyMistake for the first problem. */
export function readPolicyObject({ tree, at }: FoundObject): PolicyObject {
  const apiVersion = memberOf(tree, 'apiVersion')
  const kind = memberOf(tree, 'kind') ?? ''
  if (!KINDS.includes(kind)) {
    throw new PolicyMistake(`${at}kind`, `${quoteValue(kind)} is not one of ${KINDS.join(', ')}`)
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
    throw new PolicyMistake(`${place}namespace`, 'must be empty: this kind is cluster-scoped')
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
      throw new PolicyMistake(`${place}nonResourceURLs`, 'only a ClusterRole may have these')
    }
    const others = [rule.apiGroups, rule.resources, rule.resourceNames]
    if (others.some((list) => list.length > 0)) {
      throw new PolicyMistake(at, 'has both resources and nonResourceURLs: make it two rules')
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

/** Returns the expression in the syntax of label selectors. */
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
    if (own !== '') {
      throw new PolicyMistake(`${place}namespace`, `must be empty: a ${kind} has no namespace`)
    }
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

/** An empty group means the expected one. */
function checkGroup(tree: JsonObject, at: string, expected: string): void {
  const group = textOf(tree, 'apiGroup', at)
  if (group === '' || group === expected) return
  throw new PolicyMistake(
    `${at}apiGroup`,
    expected === '' ? 'must be empty' : `must be ${expected}`,
  )
}
