/**
 * The roles and bindings that exist without any policy file, under the names that Kubernetes uses.
 * An object of the same kind and name in the policy files replaces the built-in one.
 */
import { parseLabelSelector } from '../../api/selectors/label-selector.ts'
import { TIDINGS_GROUP } from '../../api/tidings-group.ts'
import { HEALTH_PATHS, METRICS_PATH, SLIS_PATH, VERSION_PATH } from '../server-paths.ts'
import { AUTHENTICATED, MASTERS, UNAUTHENTICATED } from '../user.ts'
import type { Binding, PolicyObject, Role } from './rbac-objects.ts'
import { RBAC_GROUP } from './rbac-objects.ts'
import type { PolicyRule } from './rule-set.ts'

const INFO = [...HEALTH_PATHS, VERSION_PATH, `${VERSION_PATH}/`]
const READ = ['get', 'list', 'watch']
/** Resources whose objects are computed from events on each list. */
const COMPUTED = ['eventsummaries', 'eventhistograms', 'retentionwindows']
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update']

/** `eventsGroup` is the API group of events besides the core group. */
export function builtinObjects(eventsGroup: string): readonly PolicyObject[] {
  const groups = ['', eventsGroup]
  const events = (verbs: readonly string[]): PolicyRule => resources(verbs, groups, ['events'])
  return [
    role('cluster-admin', [resources(['*'], ['*'], ['*']), paths(['*'], ['*'])]),
    boundTo('cluster-admin', [MASTERS]),
    aggregated('admin', []),
    aggregated('edit', ['admin']),
    aggregated('view', ['edit']),
    role('system:aggregate-to-edit', [events(WRITE)], ['edit']),
    role(
      'system:aggregate-to-view',
      [
        events(READ),
        resources(READ, [''], ['namespaces']),
        resources(READ, [TIDINGS_GROUP], ['clusters']),
        resources(['list'], [TIDINGS_GROUP], COMPUTED),
      ],
      ['view'],
    ),
    role('system:basic-user', [
      resources(
        ['create'],
        ['authorization.k8s.io'],
        ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
      ),
      resources(['create'], ['authentication.k8s.io'], ['selfsubjectreviews']),
    ]),
    boundTo('system:basic-user', [AUTHENTICATED]),
    role('system:discovery', [
      paths(['get'], [...INFO, '/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*']),
    ]),
    boundTo('system:discovery', [AUTHENTICATED]),
    role('system:public-info-viewer', [paths(['get'], INFO)]),
    boundTo('system:public-info-viewer', [AUTHENTICATED, UNAUTHENTICATED]),
    role('system:monitoring', [
      paths(
        ['get'],
        [METRICS_PATH, SLIS_PATH, ...HEALTH_PATHS, ...HEALTH_PATHS.map((path) => `${path}/*`)],
      ),
    ]),
    boundTo('system:monitoring', ['system:monitoring']),
  ]
}

function resources(
  verbs: readonly string[],
  apiGroups: readonly string[],
  names: readonly string[],
): PolicyRule {
  return { verbs, apiGroups, resources: names, resourceNames: [], nonResourceUrls: [] }
}

function paths(verbs: readonly string[], nonResourceUrls: readonly string[]): PolicyRule {
  return { verbs, apiGroups: [], resources: [], resourceNames: [], nonResourceUrls }
}

/** `into` names the aggregated roles that include this one. */
function role(name: string, rules: readonly PolicyRule[], into: readonly string[] = []): Role {
  const labels = Object.fromEntries(into.map((target) => [aggregationLabel(target), 'true']))
  return { kind: 'Role', namespace: undefined, name, labels, rules, selectors: undefined }
}

function aggregated(name: string, into: readonly string[]): Role {
  const selector = parseLabelSelector(`${aggregationLabel(name)}=true`)
  return { ...role(name, [], into), selectors: [selector] }
}

function aggregationLabel(name: string): string {
  return `${RBAC_GROUP}/aggregate-to-${name}`
}

/** Binds the role of the same name. */
function boundTo(name: string, groups: readonly string[]): Binding {
  return {
    kind: 'Binding',
    namespace: undefined,
    name,
    role: { isCluster: true, name },
    subjects: groups.map((group) => ({ kind: 'Group', name: group })),
  }
}
