/**
 * The roles that are there without any policy, under the names that Kubernetes has for them. An
 * object of the same kind and name in the policy takes the place of the one here.
 */
import { parseLabelSelector } from '../../api/label-selector.ts'
import { AUTHENTICATED, MASTERS, UNAUTHENTICATED } from '../user.ts'
import type { Binding, PolicyObject, Role } from './rbac-objects.ts'
import { RBAC_GROUP } from './rbac-objects.ts'
import type { PolicyRule } from './rule-set.ts'

const HEALTH = ['/healthz', '/livez', '/readyz']
const INFO = [...HEALTH, '/version', '/version/']
const READ = ['get', 'list', 'watch']
const WRITE = ['create', 'delete', 'deletecollection', 'patch', 'update']

/** `eventsGroup` is the API group of events; the group without a name has them as well. */
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
    role('system:aggregate-to-view', [events(READ)], ['view']),
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
        ['/metrics', '/metrics/slis', ...HEALTH, ...HEALTH.map((path) => `${path}/*`)],
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

/** `into` names the aggregated roles that take it in. */
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

/** A role and its binding have the same name. */
function boundTo(name: string, groups: readonly string[]): Binding {
  return {
    kind: 'Binding',
    namespace: undefined,
    name,
    role: { isCluster: true, name },
    subjects: groups.map((group) => ({ kind: 'Group', name: group })),
  }
}
