/** Which requests are logged, and how much of them: the `Policy` of `audit.k8s.io/v1`. */
import { isDnsLabel } from '../../api/validation/names.ts'
import type { Json, JsonObject } from '../../lib/json.ts'
import { isObject, memberOf } from '../../lib/json.ts'
import type { Attributes, ResourceAttributes } from '../attributes.ts'
import { ALL_CLUSTERS } from '../attributes.ts'
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
/** The stages of a request that are logged. */
export type AuditStage = (typeof AUDIT_STAGES)[number]

/** What the policy says about one request. */
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

/**
 * Throws an error with the name of the wrong field. Unknown fields are errors too: a misspelt
 * `users` would make a rule for all users.
 */
export function readAuditPolicy(document: Json): AuditPolicy {
  const top = new Fields(document, '')
  const apiVersion = top.text('apiVersion')
  const kind = top.text('kind')
  if (apiVersion !== 'audit.k8s.io/v1' || kind !== 'Policy') {
    throw new Error('must be a Policy: set apiVersion: audit.k8s.io/v1 and kind: Policy')
  }
  top.ignore('metadata')
  const omitStages = top.words('omitStages', AUDIT_STAGES)
  const omitManagedFields = top.boolean('omitManagedFields') ?? false
  const rules = top
    .objects('rules')
    .map((fields) => readRule(fields, omitStages, omitManagedFields))
  top.end()
  if (rules.length === 0) throw new Error('rules: at least one is required')
  return {
    rule: (user, attributes) =>
      rules.find((rule) => matches(rule, user, attributes))?.ruling ?? NOTHING,
    ruleCount: rules.length,
  }
}

function readRule(
  fields: Fields,
  omitStages: readonly AuditStage[],
  omitManagedFields: boolean,
): Rule {
  const level = wordOf(fields.text('level'), LEVELS, fields.at('level'))
  const rule: Rule = {
    ruling: {
      level,
      omitStages: new Set([...omitStages, ...fields.words('omitStages', AUDIT_STAGES)]),
      omitManagedFields: fields.boolean('omitManagedFields') ?? omitManagedFields,
    },
    users: fields.texts('users'),
    userGroups: fields.texts('userGroups'),
    verbs: fields.texts('verbs'),
    clusters: fields.texts('clusters'),
    namespaces: fields.texts('namespaces'),
    resources: fields.objects('resources').map(readResources),
    nonResourceUrls: fields.texts('nonResourceURLs'),
  }
  fields.end()
  for (const cluster of rule.clusters) checkCluster(cluster, fields.at('clusters'))
  for (const url of rule.nonResourceUrls) checkUrl(url, fields.at('nonResourceURLs'))
  if (rule.nonResourceUrls.length > 0 && rule.resources.length + rule.namespaces.length > 0) {
    throw new Error(
      `${fields.at('nonResourceURLs')}: cannot be combined with resources or namespaces in one rule`,
    )
  }
  return rule
}

function readResources(fields: Fields): GroupResources {
  const read: GroupResources = {
    group: fields.text('group') ?? '',
    resources: fields.texts('resources'),
    resourceNames: fields.texts('resourceNames'),
  }
  fields.end()
  if (read.group.includes('/')) {
    throw new Error(`${fields.at('group')}: must be a group without a version`)
  }
  if (read.resourceNames.length > 0 && read.resources.length === 0) {
    throw new Error(`${fields.at('resourceNames')}: requires at least one entry in resources`)
  }
  return read
}

/** `*` stands for requests of all clusters at once, not for any cluster. */
function checkCluster(cluster: string, at: string): void {
  if (cluster === ALL_CLUSTERS || isDnsLabel(cluster)) return
  throw new Error(`${at}: must be names of clusters (DNS labels), or ${ALL_CLUSTERS}`)
}

function checkUrl(url: string, at: string): void {
  if (url !== '*' && !url.startsWith('/')) throw new Error(`${at}: a path must start with a slash`)
  if (url.slice(0, -1).includes('*')) throw new Error(`${at}: * may only be the last character`)
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

function wordOf<const T extends string>(
  text: string | undefined,
  known: readonly T[],
  at: string,
): T {
  const word = known.find((candidate) => candidate === text)
  if (word === undefined) throw new Error(`${at}: must be one of ${known.join(', ')}`)
  return word
}

/** Reads the members of one object of the document, and finds those that were not read. */
class Fields {
  readonly #object: JsonObject
  readonly #path: string
  readonly #known = new Set<string>()

  constructor(value: Json | undefined, path: string) {
    if (!isObject(value)) throw new Error(`${path === '' ? 'the document' : path} is not an object`)
    this.#object = value
    this.#path = path
  }

  at(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`
  }

  text(name: string): string | undefined {
    const value = this.#take(name)
    if (value === undefined || typeof value === 'string') return value
    throw new Error(`${this.at(name)} is not a string`)
  }

  boolean(name: string): boolean | undefined {
    const value = this.#take(name)
    if (value === undefined || typeof value === 'boolean') return value
    throw new Error(`${this.at(name)} is not a boolean`)
  }

  texts(name: string): readonly string[] {
    return this.#list(name).map((value, index) => {
      if (typeof value === 'string') return value
      throw new Error(`${this.at(name)}[${index}] is not a string`)
    })
  }

  words<const T extends string>(name: string, known: readonly T[]): readonly T[] {
    return this.texts(name).map((text) => wordOf(text, known, this.at(name)))
  }

  objects(name: string): readonly Fields[] {
    return this.#list(name).map((value, index) => new Fields(value, `${this.at(name)}[${index}]`))
  }

  ignore(name: string): void {
    this.#known.add(name)
  }

  /** Throws if a member was not read. */
  end(): void {
    const unknown = Object.keys(this.#object).find((name) => !this.#known.has(name))
    if (unknown !== undefined) throw new Error(`${this.at(unknown)}: unknown field`)
  }

  #list(name: string): readonly Json[] {
    const value = this.#take(name) ?? []
    if (Array.isArray(value)) return value
    throw new Error(`${this.at(name)} is not a list`)
  }

  /** A member that is null counts as missing. */
  #take(name: string): Json | undefined {
    this.#known.add(name)
    return memberOf(this.#object, name) ?? undefined
  }
}
