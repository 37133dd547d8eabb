/**
 * An index of roles and bindings: for each user and group, the rules for all namespaces and for
 * each namespace. A decision reads only the entries of the user and its groups, so its cost does
 * not grow with the policy.
 */
import { goQuote } from '../../lib/go/go-quote.ts'
import type { Attributes } from '../attributes.ts'
import type { User } from '../user.ts'
import {
  type Binding,
  fullName,
  type PolicyObject,
  type Role,
  type Subject,
} from './rbac-objects.ts'
import { getOrCreate, type PolicyRule, RuleSet } from './rule-set.ts'

/** A binding whose role does not exist. Names are full: `RoleBinding ns/name`. */
export interface Dangling {
  readonly binding: string
  readonly role: string
}

export class RbacPolicy {
  /** These bindings grant nothing. */
  readonly dangling: readonly Dangling[]
  readonly #users: ReadonlyMap<string, Grants>
  readonly #groups: ReadonlyMap<string, Grants>
  readonly #assigned: AssignedRoles
  readonly #sets: RuleSets

  /** No two of the objects may have the same kind, namespace and name. */
  constructor(objects: readonly PolicyObject[]) {
    const roles = new Roles(objects.filter((object) => object.kind === 'Role'))
    const bindings = objects.filter((object) => object.kind === 'Binding')
    const assigned = new AssignedRoles()
    const dangling: Dangling[] = []
    for (const binding of bindings) {
      const role = roles.find(binding)
      if (role === undefined) dangling.push(danglingOf(binding))
      else assigned.add(binding, role)
    }
    this.dangling = dangling
    const sets = new RuleSets((role) => roles.rulesOf(role))
    this.#assigned = assigned
    this.#sets = sets
    this.#users = assigned.grants('User', sets)
    this.#groups = assigned.grants('Group', sets)
  }

  allows(user: User, attributes: Attributes): boolean {
    if (permits(this.#users.get(user.name), attributes)) return true
    for (const group of user.groups) {
      if (permits(this.#groups.get(group), attributes)) return true
    }
    return false
  }

  /**
   * Returns the binding that permits this, in the words of Kubernetes, or undefined when none does.
   * If several do, returns any of them, cluster role bindings first. Costs more than the decision.
   */
  reasonFor(user: User, attributes: Attributes): string | undefined {
    const namespace = attributes.isResource ? attributes.namespace : ''
    for (const scope of namespace === '' ? [undefined] : [undefined, namespace]) {
      for (const [role, binding] of this.#assigned.rolesOf(user, scope)) {
        if (covers(this.#sets.of([role]), attributes)) return reasonOf(binding, user)
      }
    }
    return undefined
  }

  /** All rules for a user in a namespace and on paths. */
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

/** The rules for one user or group. */
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

  /**
   * An aggregated role has the rules of all roles that it selects, recursively, but not its own.
   */
  rulesOf(role: Role): readonly PolicyRule[] {
    if (role.selectors === undefined) return role.rules
    const selected = new Set([role])
    for (const one of selected) {
      if (one.selectors === undefined) continue
      for (const other of this.#roles) {
        if (other.namespace !== undefined) continue
        if (one.selectors.some((selector) => selector.matches(other.labels))) selected.add(other)
      }
    }
    return [...selected].flatMap((one) => (one.selectors === undefined ? one.rules : []))
  }
}

function roleKey(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** The roles of each user and group by scope, each with its first binding. */
class AssignedRoles {
  readonly #roles = {
    User: new Map<string, RolesByScope>(),
    Group: new Map<string, RolesByScope>(),
  }

  add(binding: Binding, role: Role): void {
    for (const { kind, name } of binding.subjects) {
      const scopes = getOrCreate(this.#roles[kind], name, (): RolesByScope => new Map())
      getOrCreate(
        getOrCreate(scopes, binding.namespace, () => new Map()),
        role,
        () => binding,
      )
    }
  }

  *rolesOf(user: User, scope: string | undefined): Iterable<readonly [Role, Binding]> {
    yield* this.#roles.User.get(user.name)?.get(scope) ?? []
    for (const group of user.groups) yield* this.#roles.Group.get(group)?.get(scope) ?? []
  }

  grants(kind: Subject['kind'], sets: RuleSets): ReadonlyMap<string, Grants> {
    const grants = new Map<string, Grants>()
    for (const [name, scopes] of this.#roles[kind]) {
      const namespaces = new Map<string, RuleSet>()
      for (const [namespace, roles] of scopes) {
        if (namespace !== undefined) namespaces.set(namespace, sets.of([...roles.keys()]))
      }
      const everywhere = scopes.get(undefined)
      grants.set(name, {
        everywhere: everywhere === undefined ? undefined : sets.of([...everywhere.keys()]),
        namespaces: namespaces.size === 0 ? undefined : namespaces,
      })
    }
    return grants
  }
}

/** Keyed by namespace; undefined is the whole cluster. */
type RolesByScope = Map<string | undefined, Map<Role, Binding>>

/** Caches rule sets by their roles: many users and groups share few sets. */
class RuleSets {
  readonly #rulesOf: (role: Role) => readonly PolicyRule[]
  readonly #numbers = new Map<Role, number>()
  readonly #sets = new Map<string, RuleSet>()

  constructor(rulesOf: (role: Role) => readonly PolicyRule[]) {
    this.#rulesOf = rulesOf
  }

  /** `roles` has no duplicates. */
  of(roles: readonly Role[]): RuleSet {
    const numbers = roles.map((role) => getOrCreate(this.#numbers, role, () => this.#numbers.size))
    const key = numbers.sort((a, b) => a - b).join()
    return getOrCreate(this.#sets, key, () => new RuleSet(roles.flatMap(this.#rulesOf)))
  }
}

function danglingOf(binding: Binding): Dangling {
  const { isCluster, name } = binding.role
  const namespace = isCluster ? undefined : binding.namespace
  return { binding: fullName(binding), role: fullName({ kind: 'Role', namespace, name }) }
}
