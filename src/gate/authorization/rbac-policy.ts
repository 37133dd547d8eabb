/**
 * Roles and bindings, made ready for questions: per user and per group, what they may do everywhere
 * and what in one namespace. A decision looks at the caller's own name and groups and at nothing
 * else, however large the policy is.
 */
import { goQuote } from '../../lib/go-quote.ts'
import type { Attributes } from '../attributes.ts'
import type { User } from '../user.ts'
import {
  type Binding,
  type PolicyObject,
  type Role,
  type Subject,
  shownObject,
} from './rbac-objects.ts'
import { grown, type PolicyRule, RuleSet } from './rule-set.ts'

/** Both by kind and name: `RoleBinding ns/name`. */
export interface Dangling {
  readonly binding: string
  readonly role: string
}

export class RbacPolicy {
  /** Bindings whose role is not there. They give nothing. */
  readonly dangling: readonly Dangling[]
  readonly #users: ReadonlyMap<string, Grants>
  readonly #groups: ReadonlyMap<string, Grants>
  readonly #given: Given
  readonly #sets: RuleSets

  /** No two of the objects may have the same kind, namespace and name. */
  constructor(objects: readonly PolicyObject[]) {
    const roles = new Roles(objects.filter((object) => object.kind === 'Role'))
    const bindings = objects.filter((object) => object.kind === 'Binding')
    const given = new Given()
    const dangling: Dangling[] = []
    for (const binding of bindings) {
      const role = roles.find(binding)
      if (role === undefined) dangling.push(danglingOf(binding))
      else given.add(binding, role)
    }
    this.dangling = dangling
    const sets = new RuleSets((role) => roles.rulesOf(role))
    this.#given = given
    this.#sets = sets
    this.#users = given.grants('User', sets)
    this.#groups = given.grants('Group', sets)
  }

  allows(user: User, attributes: Attributes): boolean {
    if (permits(this.#users.get(user.name), attributes)) return true
    for (const group of user.groups) {
      if (permits(this.#groups.get(group), attributes)) return true
    }
    return false
  }

  /**
   * By which binding that is permitted, in the words of Kubernetes; undefined when it is not. If
   * there are many, any: those of the whole cluster first. Costs more than the decision.
   */
  reasonFor(user: User, attributes: Attributes): string | undefined {
    const namespace = attributes.isResource ? attributes.namespace : ''
    for (const place of namespace === '' ? [undefined] : [undefined, namespace]) {
      for (const [role, binding] of this.#given.rolesOf(user, place)) {
        if (covers(this.#sets.of([role]), attributes)) return reasonOf(binding, user)
      }
    }
    return undefined
  }

  /** Everything that is permitted in a namespace, and on paths. */
  rulesFor(user: User, namespace: string): readonly PolicyRule[] {
    const found = [
      this.#users.get(user.name),
      ...user.groups.map((group) => this.#groups.get(group)),
    ]
    return found.flatMap((grants) => [
      ...(grants?.everywhere?.rules ?? []),
      ...(grants?.namespaces?.get(namespace)?.rules ?? []),
    ])
  }
}

/** What one user or group may do. */
interface Grants {
  readonly everywhere: RuleSet | undefined
  readonly namespaces: ReadonlyMap<string, RuleSet> | undefined
}

function permits(grants: Grants | undefined, attributes: Attributes): boolean {
  if (grants === undefined) return false
  const { everywhere, namespaces } = grants
  if (covers(everywhere, attributes)) return true
  if (!attributes.isResource || attributes.namespace === '') return false
  return covers(namespaces?.get(attributes.namespace), attributes)
}

function covers(rules: RuleSet | undefined, attributes: Attributes): boolean {
  if (rules === undefined) return false
  const { verb } = attributes
  return attributes.isResource
    ? rules.allowsResource(verb, attributes)
    : rules.allowsPath(verb, attributes.path)
}

function reasonOf({ namespace, name, role, subjects }: Binding, user: User): string {
  const subject = subjects.find((one) =>
    one.kind === 'User' ? one.name === user.name : user.groups.includes(one.name),
  )
  const binding =
    namespace === undefined
      ? `ClusterRoleBinding ${goQuote(name)}`
      : `RoleBinding ${goQuote(`${name}/${namespace}`)}`
  const kind = role.isCluster ? 'ClusterRole' : 'Role'
  return `RBAC: allowed by ${binding} of ${kind} ${goQuote(role.name)} to ${shownSubject(subject)}`
}

function shownSubject(subject: Subject | undefined): string {
  const { kind = 'User', name = '', account } = subject ?? {}
  if (account === undefined) return `${kind} ${goQuote(name)}`
  return `ServiceAccount ${goQuote(`${account.name}/${account.namespace}`)}`
}

/** Finds roles, and what they come to. */
class Roles {
  readonly #roles: readonly Role[]
  readonly #byKey = new Map<string, Role>()

  constructor(roles: readonly Role[]) {
    this.#roles = roles
    for (const role of roles) this.#byKey.set(roleKey(role.namespace, role.name), role)
  }

  find({ namespace, role }: Binding): Role | undefined {
    return this.#byKey.get(roleKey(role.isCluster ? undefined : namespace, role.name))
  }

  /** An aggregated role has no rules of its own, but those of all that it takes in, and they in turn. */
  rulesOf(role: Role): readonly PolicyRule[] {
    if (role.selectors === undefined) return role.rules
    const met = new Set([role])
    for (const one of met) {
      if (one.selectors === undefined) continue
      for (const other of this.#roles) {
        if (other.namespace !== undefined) continue
        if (one.selectors.some((selector) => selector.matches(other.labels))) met.add(other)
      }
    }
    return [...met].flatMap((one) => (one.selectors === undefined ? one.rules : []))
  }
}

function roleKey(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** Who has been given which roles, where, and by which binding first. */
class Given {
  readonly #roles = {
    User: new Map<string, RolesByPlace>(),
    Group: new Map<string, RolesByPlace>(),
  }

  add(binding: Binding, role: Role): void {
    for (const { kind, name } of binding.subjects) {
      const places = grown(this.#roles[kind], name, (): RolesByPlace => new Map())
      grown(
        grown(places, binding.namespace, () => new Map()),
        role,
        () => binding,
      )
    }
  }

  *rolesOf(user: User, place: string | undefined): Iterable<readonly [Role, Binding]> {
    yield* this.#roles.User.get(user.name)?.get(place) ?? []
    for (const group of user.groups) yield* this.#roles.Group.get(group)?.get(place) ?? []
  }

  grants(kind: Subject['kind'], sets: RuleSets): ReadonlyMap<string, Grants> {
    const grants = new Map<string, Grants>()
    for (const [name, places] of this.#roles[kind]) {
      const namespaces = new Map<string, RuleSet>()
      for (const [namespace, roles] of places) {
        if (namespace !== undefined) namespaces.set(namespace, sets.of([...roles.keys()]))
      }
      const everywhere = places.get(undefined)
      grants.set(name, {
        everywhere: everywhere === undefined ? undefined : sets.of([...everywhere.keys()]),
        namespaces: namespaces.size === 0 ? undefined : namespaces,
      })
    }
    return grants
  }
}

/** Undefined stands for everywhere. */
type RolesByPlace = Map<string | undefined, Map<Role, Binding>>

/** Rule sets by the roles they are made of: many share few. */
class RuleSets {
  readonly #rulesOf: (role: Role) => readonly PolicyRule[]
  readonly #numbers = new Map<Role, number>()
  readonly #sets = new Map<string, RuleSet>()

  constructor(rulesOf: (role: Role) => readonly PolicyRule[]) {
    this.#rulesOf = rulesOf
  }

  /** Each role once. */
  of(roles: readonly Role[]): RuleSet {
    const numbers = roles.map((role) => grown(this.#numbers, role, () => this.#numbers.size))
    const key = numbers.sort((a, b) => a - b).join()
    return grown(this.#sets, key, () => new RuleSet(roles.flatMap(this.#rulesOf)))
  }
}

function danglingOf(binding: Binding): Dangling {
  const { isCluster, name } = binding.role
  const namespace = isCluster ? undefined : binding.namespace
  return { binding: shownObject(binding), role: shownObject({ kind: 'Role', namespace, name }) }
}
