import { setImmediate } from 'node:timers/promises'
import { follow, type OnPoll } from '../../lib/files/follow.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Attributes } from '../attributes.ts'
import { ALLOWED, type Authorizer, type Decision, NO_OPINION } from '../decisions.ts'
import type { User } from '../user.ts'
import { builtinObjects } from './rbac-builtin.ts'
import {
  EVERY_CLUSTER,
  loadPolicyFiles,
  overlaid,
  type PolicyFiles,
  type PolicyPaths,
  type ScopeFiles,
} from './rbac-files.ts'
import type { PolicyObject } from './rbac-objects.ts'
import { RbacPolicy } from './rbac-policy.ts'
import type { PolicyRule } from './rule-set.ts'

/** Without any path, only the built-in roles exist. */
export interface RbacOptions extends PolicyPaths {
  /** The API group of events, for the built-in roles. */
  readonly eventsGroup: string
  readonly log: Log
  readonly onPoll?: OnPoll | undefined
}

/** Enough to find the problem. */
const DANGLING_LOGGED_MAX = 20

/**
 * Decides by roles and bindings, as Kubernetes' RBAC does. Each cluster has a policy of its own:
 * the built-in objects, those for every cluster, and its own. The files are polled once a second;
 * while they are unusable after a change, the previous policy stays in effect.
 */
export class Rbac implements Authorizer {
  #policies: Policies
  readonly #follower: { stop(): void }

  /** Rejects if the policy is unusable, and names file, document and field. */
  static async open(options: RbacOptions): Promise<Rbac> {
    const builtin = builtinObjects(options.eventsGroup)
    return new Rbac(options, builtin, await Policies.load(options, builtin))
  }

  private constructor(options: RbacOptions, builtin: readonly PolicyObject[], policies: Policies) {
    const { log, onPoll } = options
    policies.logDangling(log)
    this.#policies = policies
    this.#follower = follow({
      inUse: policies,
      load: (current) => Policies.load(options, builtin, current),
      onChange: (found) => {
        this.#policies = found
        found.logDangling(log)
        log.info('RBAC policy reloaded', { objects: found.objectCount })
      },
      onProblem: (err) => log.warn('RBAC policy not reloaded', { err }),
      onRecovered: () => log.info('RBAC policy valid again, unchanged'),
      onPoll,
    })
  }

  decide(user: User, attributes: Attributes): Decision {
    return this.#policies.of(attributes.cluster).allows(user, attributes) ? ALLOWED : NO_OPINION
  }

  reasonFor(user: User, attributes: Attributes): string | undefined {
    return this.#policies.of(attributes.cluster).reasonFor(user, attributes)
  }

  /** Everything that a user may do in a namespace of a cluster, and on paths. */
  rulesFor(
    user: User,
    { cluster, namespace }: { readonly cluster: string; readonly namespace: string },
  ): readonly PolicyRule[] {
    return this.#policies.of(cluster).rulesFor(user, namespace)
  }

  stop(): void {
    this.#follower.stop()
  }
}

/** The policies of all clusters. */
class Policies {
  readonly files: PolicyFiles
  /** Policies of the clusters that have files of their own. */
  readonly #byCluster = new Map<string, RbacPolicy>()
  /** The policy of all other clusters, and of requests for all clusters at once. */
  readonly #common: RbacPolicy

  /** Returns `current` itself when the content of the files is unchanged. */
  static async load(
    where: PolicyPaths,
    builtin: readonly PolicyObject[],
    current?: Policies,
  ): Promise<Policies> {
    const files = await loadPolicyFiles(where, current?.files)
    if (files === current?.files) return current
    const common = overlaid(builtin, files.scopes.get(EVERY_CLUSTER)?.objects ?? [])
    const policies = new Policies(files, new RbacPolicy(common))
    for (const [cluster, { objects }] of files.scopes) {
      if (cluster === EVERY_CLUSTER) continue
      // Yield between two policies, so that many of them do not block requests.
      await setImmediate()
      policies.#byCluster.set(cluster, new RbacPolicy(overlaid(common, objects)))
    }
    return policies
  }

  private constructor(files: PolicyFiles, common: RbacPolicy) {
    this.files = files
    this.#common = common
  }

  of(cluster: string): RbacPolicy {
    return this.#byCluster.get(cluster) ?? this.#common
  }

  get objectCount(): number {
    let count = 0
    for (const { objects } of this.files.scopes.values()) count += objects.length
    return count
  }

  logDangling(log: Log): void {
    for (const [scope, files] of this.files.scopes) logDangling(this.of(scope), files, log)
  }
}

/** Logs only the bindings of these files: those for every cluster would be logged for each one. */
function logDangling(policy: RbacPolicy, { places }: ScopeFiles, log: Log): void {
  const dangling = policy.dangling.filter(({ binding }) => places.has(binding))
  for (const { binding, role } of dangling.slice(0, DANGLING_LOGGED_MAX)) {
    const file = places.get(binding)
    log.warn('Binding refers to a role that does not exist', { binding, role, file })
  }
  const more = dangling.length - DANGLING_LOGGED_MAX
  if (more > 0) log.warn('More bindings refer to roles that do not exist', { count: more })
}
