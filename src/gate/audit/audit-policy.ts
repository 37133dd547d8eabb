/** The `Policy` of `audit.k8s.io/v1`: which requests are logged, and in how much detail. */
import { isDnsLabel } from '../../api/validation/names.ts'
import { readBounded } from '../../lib/files/bounded-file.ts'
import { fieldOf, mistake, objectOf, shown } from '../../lib/files/config-fields.ts'
import { follow, type OnPoll } from '../../lib/files/follow.ts'
import { isObject, type Json, type JsonObject, memberOf } from '../../lib/json.ts'
import type { Log } from '../../lib/log/log.ts'
import { yamlDocuments } from '../../lib/text/yaml-documents.ts'
import { ALL_CLUSTERS, type Attributes, type ResourceAttributes } from '../attributes.ts'
import { listOf, textOf, textsOf } from '../policy-fields.ts'
import type { User } from '../user.ts'

const LEVELS = ['None', 'Metadata', 'Request', 'RequestResponse'] as const
/** How much is logged, from nothing to request and response bodies. */
export type AuditLevel = (typeof LEVELS)[number]

export const AUDIT_STAGES = [
  'RequestReceived',
  'ResponseStarted',
  'ResponseComplete',
  'Panic',
] as const
export type AuditStage = (typeof AUDIT_STAGES)[number]

export interface AuditRuling {
  readonly level: AuditLevel
  readonly omitStages: ReadonlySet<AuditStage>
  readonly omitManagedFields: boolean
}

export interface AuditPolicy {
  /** The first rule that matches decides; if none does, nothing is logged. */
  rule(user: User | undefined, attributes: Attributes): AuditRuling
  readonly ruleCount: number
}

/** An empty list matches anything. */
interface Rule {
  readonly ruling: AuditRuling
  readonly users: readonly string[]
  readonly userGroups: readonly string[]
  readonly verbs: readonly string[]
  readonly clusters: readonly string[]
  readonly namespaces: readonly string[]
  readonly resources: readonly GroupResources[]
  readonly nonResourceUrls: readonly string[]
}

interface GroupResources {
  readonly group: string
  readonly resources: readonly string[]
  readonly resourceNames: readonly string[]
}

const NOTHING: AuditRuling = { level: 'None', omitStages: new Set(), omitManagedFields: false }

const POLICY_FIELDS = ['apiVersion', 'kind', 'metadata', 'omitStages', 'omitManagedFields', 'rules']

/** Throws an error that names the wrong field. */
export function readAuditPolicy(document: Json): AuditPolicy {
  if (
    !isObject(document) ||
    memberOf(document, 'apiVersion') !== 'audit.k8s.io/v1' ||
    memberOf(document, 'kind') !== 'Policy'
  ) {
    throw new Error('must be a Policy: set apiVersion: audit.k8s.io/v1 and kind: Policy')
  }
  const tree = objectOf(document, '', POLICY_FIELDS)
  const omitStages = stagesOf(tree, '')
  const omitManagedFields = booleanOf(tree, 'omitManagedFields', '') ?? false
  const rules = listOf(tree, 'rules', '').map((rule, index) =>
    readRule(rule, `rules[${index}]`, omitStages, omitManagedFields),
  )
  if (rules.length === 0) throw mistake('rules', 'at least one is required')
  return {
    rule: (user, attributes) =>
      rules.find((rule) => matches(rule, user, attributes))?.ruling ?? NOTHING,
    ruleCount: rules.length,
  }
}

const RULE_FIELDS = [
  'level',
  'omitStages',
  'omitManagedFields',
  'users',
  'userGroups',
  'verbs',
  'clusters',
  'namespaces',
  'resources',
  'nonResourceURLs',
]

function readRule(
  value: Json,
  at: string,
  omitStages: readonly AuditStage[],
  omitManagedFields: boolean,
): Rule {
  const tree = objectOf(value, at, RULE_FIELDS)
  const rule: Rule = {
    ruling: {
      level: wordOf(textOf(tree, 'level', at), LEVELS, `${at}.level`),
      omitStages: new Set([...omitStages, ...stagesOf(tree, at)]),
      omitManagedFields: booleanOf(tree, 'omitManagedFields', at) ?? omitManagedFields,
    },
    users: textsOf(tree, 'users', at),
    userGroups: textsOf(tree, 'userGroups', at),
    verbs: textsOf(tree, 'verbs', at),
    clusters: textsOf(tree, 'clusters', at),
    namespaces: textsOf(tree, 'namespaces', at),
    resources: listOf(tree, 'resources', at).map((entry, index) =>
      readResources(entry, `${at}.resources[${index}]`),
    ),
    nonResourceUrls: textsOf(tree, 'nonResourceURLs', at),
  }
  for (const cluster of rule.clusters) checkCluster(cluster, `${at}.clusters`)
  for (const url of rule.nonResourceUrls) checkUrl(url, `${at}.nonResourceURLs`)
  if (rule.nonResourceUrls.length > 0 && rule.resources.length + rule.namespaces.length > 0) {
    throw mistake(
      `${at}.nonResourceURLs`,
      'cannot be combined with resources or namespaces in one rule',
    )
  }
  return rule
}

function readResources(value: Json, at: string): GroupResources {
  const tree = objectOf(value, at, ['group', 'resources', 'resourceNames'])
  const group = textOf(tree, 'group', at)
  const resources = textsOf(tree, 'resources', at)
  const resourceNames = textsOf(tree, 'resourceNames', at)
  if (group.includes('/')) throw mistake(`${at}.group`, 'must be a group without a version')
  if (resourceNames.length > 0 && resources.length === 0) {
    throw mistake(`${at}.resourceNames`, 'requires at least one entry in resources')
  }
  return { group, resources, resourceNames }
}

/** `*` stands for requests of all clusters at once, not for any cluster. */
function checkCluster(cluster: string, field: string): void {
  if (cluster === ALL_CLUSTERS || isDnsLabel(cluster)) return
  throw mistake(field, `must be names of clusters (DNS labels), or ${ALL_CLUSTERS}`)
}

function checkUrl(url: string, field: string): void {
  if (url !== '*' && !url.startsWith('/')) throw mistake(field, 'a path must start with a slash')
  if (url.slice(0, -1).includes('*')) throw mistake(field, '* may only be the last character')
}

function matches(rule: Rule, user: User | undefined, attributes: Attributes): boolean {
  if (!allows(rule.users, user?.name)) return false
  if (rule.userGroups.length > 0 && !rule.userGroups.some((name) => user?.groups.includes(name))) {
    return false
  }
  if (!allows(rule.verbs, attributes.verb)) return false
  if (!allows(rule.clusters, attributes.cluster)) return false
  if (rule.namespaces.length + rule.resources.length > 0) {
    return attributes.isResource && matchesResource(rule, attributes)
  }
  if (rule.nonResourceUrls.length === 0) return true
  const { path } = attributes
  return !attributes.isResource && rule.nonResourceUrls.some((url) => matchesPath(url, path))
}

/** The namespace of a cluster-scoped resource, and of a list of all namespaces, is ''. */
function matchesResource(rule: Rule, attributes: ResourceAttributes): boolean {
  if (!allows(rule.namespaces, attributes.namespace)) return false
  return (
    rule.resources.length === 0 || rule.resources.some((resources) => covers(resources, attributes))
  )
}

function covers(listed: GroupResources, attributes: ResourceAttributes): boolean {
  if (listed.group !== attributes.group) return false
  if (listed.resources.length === 0) return true
  return (
    allows(listed.resourceNames, attributes.name) &&
    listed.resources.some((resource) => coversOne(resource, attributes))
  )
}

/**
 * `events` does not cover its subresources; `events/*` covers both, `*` everything, and a star
 * before a slash covers that subresource of all resources.
 */
function coversOne(listed: string, { resource, subresource }: ResourceAttributes): boolean {
  if (listed === '*') return true
  if (listed === (subresource === '' ? resource : `${resource}/${subresource}`)) return true
  if (subresource !== '' && listed === `*/${subresource}`) return true
  return listed.endsWith('/*') && listed.slice(0, -2) === resource
}

function matchesPath(url: string, path: string): boolean {
  return url.endsWith('*') ? path.startsWith(url.slice(0, -1)) : path === url
}

function allows(listed: readonly string[], value: string | undefined): boolean {
  return listed.length === 0 || (value !== undefined && listed.includes(value))
}

/** The value of a field that must be one of these words. */
function wordOf<const T extends string>(text: string, known: readonly T[], field: string): T {
  const word = known.find((candidate) => candidate === text)
  if (word === undefined) throw mistake(field, `must be one of ${known.join(', ')}`)
  return word
}

function stagesOf(tree: JsonObject, at: string): readonly AuditStage[] {
  const field = fieldOf(at, 'omitStages')
  return textsOf(tree, 'omitStages', at).map((text) => wordOf(text, AUDIT_STAGES, field))
}

function booleanOf(tree: JsonObject, name: string, at: string): boolean | undefined {
  const value = memberOf(tree, name) ?? undefined
  if (value === undefined || typeof value === 'boolean') return value
  throw mistake(fieldOf(at, name), `${shown(value)} is not a boolean`)
}

/** Enough for thousands of rules; each request is compared with each of them. */
const FILE_BYTES_MAX = 1024 * 1024

/** The policy of a file that is polled once a second. */
export interface FollowedAuditPolicy {
  policy(): AuditPolicy
  stop(): void
}

/**
 * Rejects if the file is unusable, with an error that names it. While the file is unusable after a
 * change, the previous policy stays in effect.
 */
export async function openAuditPolicy(
  path: string,
  log: Log,
  onPoll?: OnPoll,
): Promise<FollowedAuditPolicy> {
  let inUse = await load(path)
  const follower = follow({
    inUse,
    load: (current) => load(path, current),
    onChange: (found) => {
      inUse = found
      log.info('Audit policy reloaded', { file: path, rules: found.policy.ruleCount })
    },
    onProblem: (err) => log.warn('Audit policy not reloaded', { err }),
    onRecovered: () => log.info('Audit policy valid again, unchanged', { file: path }),
    onPoll,
  })
  return { policy: () => inUse.policy, stop: () => follower.stop() }
}

interface PolicyFile {
  readonly content: Buffer
  readonly policy: AuditPolicy
}

/** Returns `current` itself when the content of the file is unchanged. */
async function load(path: string, current?: PolicyFile): Promise<PolicyFile> {
  const content = await readBounded(path, FILE_BYTES_MAX)
  if (current?.content.equals(content) === true) return current
  try {
    return { content, policy: auditPolicyOf(content.toString()) }
  } catch (cause) {
    throw new Error(path, { cause })
  }
}

/** Throws an error that names the wrong field. */
export function auditPolicyOf(text: string): AuditPolicy {
  const [document, second] = [...yamlDocuments(text)]
  if (document === undefined) throw new Error('the file is empty')
  if (second !== undefined) throw new Error('the file has more than one document')
  return readAuditPolicy(document.value)
}
