import type { ResourceAttributes } from '../attributes.ts'

/** A rule of a role as in Kubernetes' RBAC: all lists must match, `*` matches anything. */
export interface PolicyRule {
  readonly verbs: readonly string[]
  readonly apiGroups: readonly string[]
  /** `events`, `events/status`, `*` for all including subresources, or `*` and a subresource. */
  readonly resources: readonly string[]
  /** If empty, objects of any name. */
  readonly resourceNames: readonly string[]
  /** A path that ends with `*` is a prefix. */
  readonly nonResourceUrls: readonly string[]
}

type Resource = Pick<ResourceAttributes, 'group' | 'resource' | 'subresource' | 'name'>

const ANY = '*'

/** An index of rules. A decision takes a few lookups, however many rules there are. */
export class RuleSet {
  readonly rules: readonly PolicyRule[]
  /** Keyed by verb, API group and resource. */
  readonly #names = new Map<string, Map<string, Map<string, Names>>>()
  /** Keyed by verb. */
  readonly #paths = new Map<string, Paths>()

  constructor(rules: readonly PolicyRule[]) {
    this.rules = rules
    for (const rule of rules) {
      for (const verb of rule.verbs) {
        if (rule.nonResourceUrls.length > 0) {
          getOrCreate(this.#paths, verb, () => new Paths()).add(rule.nonResourceUrls)
        }
        this.#addResources(verb, rule)
      }
    }
  }

  allowsResource(verb: string, attributes: Resource): boolean {
    return this.#withVerb(verb, attributes) || (verb !== ANY && this.#withVerb(ANY, attributes))
  }

  allowsPath(verb: string, path: string): boolean {
    return (
      this.#paths.get(verb)?.include(path) === true || this.#paths.get(ANY)?.include(path) === true
    )
  }

  #addResources(verb: string, rule: PolicyRule): void {
    for (const group of rule.apiGroups) {
      for (const resource of rule.resources) {
        const groups = getOrCreate(this.#names, verb, () => new Map<string, Map<string, Names>>())
        const resources = getOrCreate(groups, group, () => new Map<string, Names>())
        getOrCreate(resources, resource, () => new Names()).add(rule.resourceNames)
      }
    }
  }

  #withVerb(verb: string, attributes: Resource): boolean {
    const groups = this.#names.get(verb)
    if (groups === undefined) return false
    return (
      allowedIn(groups.get(attributes.group), attributes) || allowedIn(groups.get(ANY), attributes)
    )
  }
}

function allowedIn(
  resources: ReadonlyMap<string, Names> | undefined,
  attributes: Resource,
): boolean {
  if (resources === undefined) return false
  const { resource, subresource, name } = attributes
  if (resources.get(ANY)?.include(name) === true) return true
  if (subresource === '') return resources.get(resource)?.include(name) === true
  return (
    resources.get(`${resource}/${subresource}`)?.include(name) === true ||
    resources.get(`${ANY}/${subresource}`)?.include(name) === true
  )
}

/** The names of permitted objects. */
class Names {
  #areAll = false
  readonly #some = new Set<string>()

  add(names: readonly string[]): void {
    if (names.length === 0) this.#areAll = true
    for (const name of names) this.#some.add(name)
  }

  include(name: string): boolean {
    return this.#areAll || this.#some.has(name)
  }
}

class Paths {
  readonly #exact = new Set<string>()
  readonly #prefixes = new Set<string>()

  add(paths: readonly string[]): void {
    for (const path of paths) {
      this.#exact.add(path)
      if (path.endsWith(ANY)) this.#prefixes.add(path.replace(/\*+$/, ''))
    }
  }

  include(path: string): boolean {
    if (this.#exact.has(path)) return true
    for (const prefix of this.#prefixes) if (path.startsWith(prefix)) return true
    return false
  }
}

export function getOrCreate<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key)
  if (value === undefined) {
    value = make()
    map.set(key, value)
  }
  return value
}
