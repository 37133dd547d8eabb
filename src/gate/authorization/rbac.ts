import { follow, type OnLook } from '../../lib/files/follow.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Attributes } from '../attributes.ts'
import type { Authorizer, Decision } from '../gate.ts'
import type { User } from '../user.ts'
import { builtinObjects } from './rbac-builtin.ts'
import { loadPolicyFiles, overlaid, type PolicyFiles } from './rbac-files.ts'
import { RbacPolicy } from './rbac-policy.ts'
import type { PolicyRule } from './rule-set.ts'

export interface RbacOptions {
  /** Files and folders; without any, only the built-in roles exist. */
  readonly paths: readonly string[]
  /** The API group of events, for the built-in roles. */
  readonly eventsGroup: string
  readonly log: Log
  readonly onLook?: OnLook | undefined
}

const ALLOWED: Promise<Decision> = Promise.resolve({ verdict: 'allow' })
const NO_OPINION: Promise<Decision> = Promise.resolve({ verdict: 'no-opinion' })
/** Enough to find the problem. */
const DANGLING_LOGGED_MAX = 20

/**
 * Decides by roles and bindings, as Kubernetes' RBAC does. The files are polled once a second;
 * while changed files cannot be used, the last usable policy stays in effect.
 */
export class Rbac implements Authorizer {
  #policy: RbacPolicy
  readonly #follower: { stop(): void }

  /** Rejects if the policy cannot be used; the error has file, document and field. */
  static async open(options: RbacOptions): Promise<Rbac> {
    return new Rbac(options, await loadPolicyFiles(options.paths))
  }

  private constructor(options: RbacOptions, files: PolicyFiles) {
    const { paths, eventsGroup, log, onLook } = options
    const builtin = builtinObjects(eventsGroup)
    const policyOf = ({ objects, places }: PolicyFiles): RbacPolicy => {
      const policy = new RbacPolicy(overlaid(builtin, objects))
      logDangling(policy, places, log)
      return policy
    }
    this.#policy = policyOf(files)
    this.#follower = follow({
      inUse: files,
      load: (current) => loadPolicyFiles(paths, current),
      onChange: (found) => {
        this.#policy = policyOf(found)
        log.info('RBAC policy reloaded', { objects: found.objects.length })
      },
      onProblem: (err) => log.warn('RBAC policy not reloaded', { err }),
      onMended: () => log.info('RBAC policy valid again, unchanged'),
      onLook,
    })
  }

  decide(user: User, attributes: Attributes): Promise<Decision> {
    return this.#policy.allows(user, attributes) ? ALLOWED : NO_OPINION
  }

  reasonFor(user: User, attributes: Attributes): string | undefined {
    return this.#policy.reasonFor(user, attributes)
  }

  /** Everything that a user may do in a namespace, and on paths. */
  rulesFor(user: User, namespace: string): readonly PolicyRule[] {
    return this.#policy.rulesFor(user, namespace)
  }

  stop(): void {
    this.#follower.stop()
  }
}

function logDangling({ dangling }: RbacPolicy, places: PolicyFiles['places'], log: Log): void {
  for (const { binding, role } of dangling.slice(0, DANGLING_LOGGED_MAX)) {
    const file = places.get(binding)
    log.warn('Binding refers to a role that does not exist', { binding, role, file })
  }
  const more = dangling.length - DANGLING_LOGGED_MAX
  if (more > 0) log.warn('More bindings refer to roles that do not exist', { count: more })
}
