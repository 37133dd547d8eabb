/** Reads roles and bindings in the format of Kubernetes, and validates them like its API. */
import type { Labels } from '../../api/selectors/compact-labels.ts'
import { type LabelSelector, parseLabelSelector } from '../../api/selectors/label-selector.ts'
import { fieldOf, mistake, objectOf, shown } from '../../lib/files/config-fields.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import { checkLabel, labelsOf, listOf, requiredText, textOf, textsOf } from '../policy-fields.ts'
import { serviceAccountUser } from '../user.ts'
import type { PolicyRule } from './rule-set.ts'

export interface Role {
  readonly kind: 'Role'
  /** Undefined for a ClusterRole. */
  readonly namespace: string | undefined
  readonly name: string
  readonly labels: Labels
  readonly rules: readonly PolicyRule[]
  /**
   * Present in an aggregated role: the rules of all cluster roles that match one of these selectors
   * replace its own.
   */
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

/** The subject of a binding. A service account is a user with a special name. */
export interface Subject {
  readonly kind: 'User' | 'Group'
  readonly name: string
  /** Present for a service account. */
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

/** An object of a document. A document may contain a list of objects. */
export interface FoundObject {
  /** Its path in the document: empty, or `items[2]`. */
  readonly at: string
  readonly tree: JsonObject
}

/** Throws for a document that is neither an object nor a list. */
export function* objectsIn(tree: Json): Generator<FoundObject> {
  if (!isObject(tree)) throw new Error(NOT_AN_OBJECT)
  const kind = memberOf(tree, 'kind')
  const item = typeof kind === 'string' ? /^(.*)List$/.exec(kind)?.[1] : undefined
  if (item === undefined) {
    yield { at: '', tree }
    return
  }
  const inherited = item === '' ? {} : { apiVersion: memberOf(tree, 'apiVersion'), kind: item }
  for (const [index, entry] of listOf(tree, 'items', '').entries()) {
    const at = `items[${index}]`
    if (!isObject(entry)) throw mistake(at, NOT_AN_OBJECT)
    yield { at, tree: { ...inherited, ...entry } as JsonObject }
  }
}

const NOT_AN_OBJECT = 'must be an object'

/** Throws for the first problem. */
export function readPolicyObject({ tree, at }: FoundObject): PolicyObject {
  const kind = memberOf(tree, 'kind') ?? ''
  if (!KINDS.includes(kind)) {
    throw mistake(fieldOf(at, 'kind'), `${shown(kind)} is not one of ${KINDS.join(', ')}`)
  }
  if (memberOf(tree, 'apiVersion') !== API_VERSION) {
    throw mistake(fieldOf(at, 'apiVersion'), `must be ${API_VERSION}`)
  }
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

/** Other fields of the metadata are ignored. */
function readMeta(tree: JsonObject, at: string, isCluster: boolean): Meta {
  const place = fieldOf(at, 'metadata')
  const metadata = memberOf(tree, 'metadata')
  if (!isObject(metadata)) throw mistake(place, 'is missing')
  const name = requiredText(metadata, 'name', place)
  if (name === '.' || name === '..' || /[/%]/.test(name)) {
    throw mistake(`${place}.name`, 'must not be . or .. nor contain / or %')
  }
  const namespace = textOf(metadata, 'namespace', place)
  if (isCluster && namespace !== '') {
    throw mistake(`${place}.namespace`, 'must be empty: this kind is cluster-scoped')
  }
  if (!isCluster && namespace === '') throw mistake(`${place}.namespace`, 'is missing')
  const labels = labelsOf(metadata, 'labels', place)
  return { name, labels, namespace: isCluster ? undefined : namespace }
}

function readRole(tree: JsonObject, at: string, meta: Meta): Role {
  const isCluster = meta.namespace === undefined
  const fields = ['apiVersion', 'kind', 'metadata', 'rules']
  objectOf(tree, at, isCluster ? [...fields, 'aggregationRule'] : fields)
  const rules = listOf(tree, 'rules', at).map((rule, index) =>
    readRule(rule, `${fieldOf(at, 'rules')}[${index}]`, isCluster),
  )
  return { kind: 'Role', ...meta, rules, selectors: readAggregation(tree, at) }
}

const RULE_FIELDS = ['verbs', 'apiGroups', 'resources', 'resourceNames', 'nonResourceURLs']

function readRule(value: Json, at: string, isCluster: boolean): PolicyRule {
  const tree = objectOf(value, at, RULE_FIELDS)
  const rule: PolicyRule = {
    verbs: textsOf(tree, 'verbs', at),
    apiGroups: textsOf(tree, 'apiGroups', at),
    resources: textsOf(tree, 'resources', at),
    resourceNames: textsOf(tree, 'resourceNames', at),
    nonResourceUrls: textsOf(tree, 'nonResourceURLs', at),
  }
  if (rule.verbs.length === 0) throw mistake(`${at}.verbs`, 'must not be empty')
  if (rule.nonResourceUrls.length > 0) {
    if (!isCluster) throw mistake(`${at}.nonResourceURLs`, 'only a ClusterRole may have these')
    const others = [rule.apiGroups, rule.resources, rule.resourceNames]
    if (others.some((list) => list.length > 0)) {
      throw mistake(at, 'has both resources and nonResourceURLs: split it into two rules')
    }
    return rule
  }
  if (rule.apiGroups.length === 0) throw mistake(`${at}.apiGroups`, 'must not be empty')
  if (rule.resources.length === 0) throw mistake(`${at}.resources`, 'must not be empty')
  return rule
}

function readAggregation(tree: JsonObject, at: string): readonly LabelSelector[] | undefined {
  const value = memberOf(tree, 'aggregationRule') ?? undefined
  if (value === undefined) return undefined
  const place = fieldOf(at, 'aggregationRule')
  const aggregation = objectOf(value, place, ['clusterRoleSelectors'])
  const selectors = listOf(aggregation, 'clusterRoleSelectors', place)
  if (selectors.length === 0) throw mistake(`${place}.clusterRoleSelectors`, 'must not be empty')
  return selectors.map((selector, index) =>
    readSelector(selector, `${place}.clusterRoleSelectors[${index}]`),
  )
}

function readSelector(value: Json, at: string): LabelSelector {
  const tree = objectOf(value, at, ['matchLabels', 'matchExpressions'])
  const labels = Object.entries(labelsOf(tree, 'matchLabels', at))
  const terms = labels.map(([key, text]) => `${key}=${text}`)
  for (const [index, entry] of listOf(tree, 'matchExpressions', at).entries()) {
    terms.push(readExpression(entry, `${at}.matchExpressions[${index}]`))
  }
  return parseLabelSelector(terms.join(','))
}

/** Returns the expression in the syntax of label selectors. */
function readExpression(value: Json, at: string): string {
  const tree = objectOf(value, at, ['key', 'operator', 'values'])
  const key = requiredText(tree, 'key', at)
  const values = textsOf(tree, 'values', at)
  checkLabel(key, values, at)
  const operator = textOf(tree, 'operator', at)
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) throw mistake(`${at}.values`, 'must not be empty')
      return `${key} ${operator.toLowerCase()} (${values.join(',')})`
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) throw mistake(`${at}.values`, `must be empty: ${operator}`)
      return operator === 'Exists' ? key : `!${key}`
    default:
      throw mistake(`${at}.operator`, 'must be In, NotIn, Exists or DoesNotExist')
  }
}

function readBinding(tree: JsonObject, at: string, { namespace, name }: Meta): Binding {
  objectOf(tree, at, ['apiVersion', 'kind', 'metadata', 'subjects', 'roleRef'])
  const place = fieldOf(at, 'roleRef')
  const value = memberOf(tree, 'roleRef') ?? undefined
  if (value === undefined) throw mistake(place, 'is missing')
  const roleRef = objectOf(value, place, ['apiGroup', 'kind', 'name'])
  checkGroup(roleRef, place, RBAC_GROUP)
  const kind = textOf(roleRef, 'kind', place)
  const kinds = namespace === undefined ? ['ClusterRole'] : ['Role', 'ClusterRole']
  if (!kinds.includes(kind)) throw mistake(`${place}.kind`, `must be ${kinds.join(' or ')}`)
  const role = { isCluster: kind === 'ClusterRole', name: requiredText(roleRef, 'name', place) }
  const subjects = listOf(tree, 'subjects', at).map((subject, index) =>
    readSubject(subject, `${fieldOf(at, 'subjects')}[${index}]`, namespace),
  )
  return { kind: 'Binding', namespace, name, role, subjects }
}

function readSubject(value: Json, at: string, namespace: string | undefined): Subject {
  const tree = objectOf(value, at, ['kind', 'apiGroup', 'name', 'namespace'])
  const kind = textOf(tree, 'kind', at)
  const name = requiredText(tree, 'name', at)
  const own = textOf(tree, 'namespace', at)
  if (kind === 'User' || kind === 'Group') {
    checkGroup(tree, at, RBAC_GROUP)
    if (own !== '') throw mistake(`${at}.namespace`, `must be empty: a ${kind} has no namespace`)
    return { kind, name }
  }
  if (kind !== 'ServiceAccount') {
    throw mistake(`${at}.kind`, 'must be User, Group or ServiceAccount')
  }
  checkGroup(tree, at, '')
  const home = own === '' ? namespace : own
  if (home === undefined) throw mistake(`${at}.namespace`, 'is missing')
  const account = { namespace: home, name }
  return { kind: 'User', name: serviceAccountUser(home, name), account }
}

/** An empty group means the expected one. */
function checkGroup(tree: JsonObject, at: string, expected: string): void {
  const group = textOf(tree, 'apiGroup', at)
  if (group === '' || group === expected) return
  throw mistake(`${at}.apiGroup`, expected === '' ? 'must be empty' : `must be ${expected}`)
}
