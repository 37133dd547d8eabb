import type { FlagTable, Rule } from './flag.ts'
import { boolean, duration, list, Mistake, optionalPath, quote } from './kinds.ts'

export interface AuthorizationOptions {
  /** Authorizers in the order in which they are called. */
  readonly authorizationModes: readonly string[]
  readonly rbacPolicyPaths: readonly string[]
  readonly authorizationWebhookConfigFile: string | undefined
  readonly authorizationWebhookAuthorizedTtlMs: number
  readonly authorizationWebhookUnauthorizedTtlMs: number
  /** Whether the webhook also decides about clusters other than the default one. */
  readonly authorizationWebhookAllClusters: boolean
  /** A path that ends with `*` matches every path with that prefix. */
  readonly authorizationAlwaysAllowPaths: readonly string[]
}

const modes = ['RBAC', 'Webhook', 'AlwaysAllow']

export const authorizationFlags: FlagTable<AuthorizationOptions> = {
  authorizationModes: {
    name: 'authorization-mode',
    topic: 'Access',
    kind: list('modes', authorizationMode),
    default: ['RBAC'],
    help: 'Authorizers, in the order in which they are called: RBAC, Webhook, AlwaysAllow. The first one that allows or denies a request decides; a request without a decision is denied. AlwaysAllow allows every authenticated request.',
  },
  rbacPolicyPaths: {
    name: 'rbac-policy-path',
    topic: 'Access',
    kind: list('paths', (item) => item),
    default: [],
    help: 'Files, and folders of .yaml, .yml and .json files, with roles and bindings of rbac.authorization.k8s.io/v1. Those in the root of a folder are for the cluster of --cluster-name, those in clusters/<name>/ for that cluster, and those in clusters/_all/ for all clusters. Checked for changes once a second. Without it, only the built-in roles exist.',
  },
  authorizationWebhookConfigFile: {
    name: 'authorization-webhook-config-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'Kubeconfig of the webhook that authorizes requests by SubjectAccessReview (v1). Checked for changes once a second. Needs Webhook in --authorization-mode.',
  },
  authorizationWebhookAuthorizedTtlMs: {
    name: 'authorization-webhook-cache-authorized-ttl',
    topic: 'Access',
    kind: duration({ positive: false }),
    default: 300_000,
    help: 'How long the webhook response "allowed" is cached. 0 turns this cache off.',
  },
  authorizationWebhookUnauthorizedTtlMs: {
    name: 'authorization-webhook-cache-unauthorized-ttl',
    topic: 'Access',
    kind: duration({ positive: false }),
    default: 30_000,
    help: 'How long the webhook response "not allowed" is cached. 0 turns this cache off.',
  },
  authorizationWebhookAllClusters: {
    name: 'authorization-webhook-all-clusters',
    topic: 'Access',
    kind: boolean,
    default: false,
    help: 'Also call the webhook for clusters other than that of --cluster-name. Only for a webhook that reads the cluster in spec.extra["tidings.dev/cluster"].',
  },
  authorizationAlwaysAllowPaths: {
    name: 'authorization-always-allow-paths',
    topic: 'Access',
    kind: list('paths', openPath),
    default: [],
    help: 'Paths that every client may request, even without credentials, such as /livez,/readyz for the probes of an orchestrator. A path that ends with * matches every path with that prefix. API resources cannot be opened in this way.',
  },
}

export const authorizationRules: readonly Rule<AuthorizationOptions>[] = [
  {
    about: ['authorizationModes', 'authorizationWebhookConfigFile'],
    check: ({ authorizationModes, authorizationWebhookConfigFile }) => {
      const isEnabled = authorizationModes.includes('Webhook')
      const isConfigured = authorizationWebhookConfigFile !== undefined
      if (isEnabled === isConfigured) return undefined
      return isEnabled
        ? '--authorization-mode=Webhook needs --authorization-webhook-config-file: add --authorization-webhook-config-file=<path>'
        : '--authorization-webhook-config-file has no effect without Webhook: add it to --authorization-mode, or leave the file out'
    },
  },
  {
    about: ['authorizationModes', 'rbacPolicyPaths'],
    check: ({ authorizationModes, rbacPolicyPaths }) =>
      rbacPolicyPaths.length === 0 || authorizationModes.includes('RBAC')
        ? undefined
        : '--rbac-policy-path has no effect without RBAC: add it to --authorization-mode, or leave the policy out',
  },
]

function authorizationMode(item: string): string {
  if (modes.includes(item)) return item
  throw new Mistake(`${quote(item)} is not known: write ${modes.join(', ')} or several of them`)
}

function openPath(item: string): string {
  if (!item.startsWith('/')) {
    throw new Mistake(`${quote(item)} is not a path: write one such as /livez, or /livez/*`)
  }
  if (item.indexOf('*') !== -1 && item.indexOf('*') !== item.length - 1) {
    throw new Mistake(`${quote(item)} has a * in the middle: it is allowed only at the end`)
  }
  return item
}
