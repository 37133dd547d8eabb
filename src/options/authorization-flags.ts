import type { FlagTable, Rule } from './flag.ts'
import { duration, list, Mistake, optionalPath, quote } from './kinds.ts'

/** Who may do what. Times are in milliseconds. */
export interface AuthorizationOptions {
  /** In the order in which they are asked. */
  readonly authorizationModes: readonly string[]
  readonly rbacPolicyPaths: readonly string[]
  readonly authorizationWebhookConfigFile: string | undefined
  readonly authorizationWebhookAuthorizedTtlMs: number
  readonly authorizationWebhookUnauthorizedTtlMs: number
  /** One that ends with `*` stands for all that begin like it. */
  readonly authorizationAlwaysAllowPaths: readonly string[]
}

const modes = ['RBAC', 'Webhook', 'AlwaysAllow']

export const authorizationFlags: FlagTable<AuthorizationOptions> = {
  authorizationModes: {
    name: 'authorization-mode',
    topic: 'Access',
    kind: list('modes', authorizationMode),
    default: ['RBAC'],
    help: 'Who is asked, one after the other, whether a caller may do what it asks for: RBAC, Webhook, AlwaysAllow. The first who says yes or no decides; when nobody does, the answer is no. AlwaysAllow lets everybody with credentials do everything.',
  },
  rbacPolicyPaths: {
    name: 'rbac-policy-path',
    topic: 'Access',
    kind: list('paths', (item) => item),
    default: [],
    help: 'Files, and folders of .yaml, .yml and .json files, with roles and bindings of rbac.authorization.k8s.io/v1. Looked at once a second. Without them there are the built-in roles alone.',
  },
  authorizationWebhookConfigFile: {
    name: 'authorization-webhook-config-file',
    topic: 'Access',
    kind: optionalPath,
    default: undefined,
    help: 'Kubeconfig with the server that is asked by SubjectAccessReview (v1). Looked at once a second. Needs Webhook in --authorization-mode.',
  },
  authorizationWebhookAuthorizedTtlMs: {
    name: 'authorization-webhook-cache-authorized-ttl',
    topic: 'Access',
    kind: duration({ positive: false }),
    default: 300_000,
    help: 'How long a yes of the webhook is good for. 0 asks every time.',
  },
  authorizationWebhookUnauthorizedTtlMs: {
    name: 'authorization-webhook-cache-unauthorized-ttl',
    topic: 'Access',
    kind: duration({ positive: false }),
    default: 30_000,
    help: 'How long a no of the webhook is good for. 0 asks every time.',
  },
  authorizationAlwaysAllowPaths: {
    name: 'authorization-always-allow-paths',
    topic: 'Access',
    kind: list('paths', openPath),
    default: [],
    help: 'Paths that are open to everybody, without credentials too, such as /livez,/readyz for the probes of an orchestrator. One that ends with * stands for all that begin like it. Not for objects of the API.',
  },
}

export const authorizationRules: readonly Rule<AuthorizationOptions>[] = [
  {
    about: ['authorizationModes', 'authorizationWebhookConfigFile'],
    check: ({ authorizationModes, authorizationWebhookConfigFile }) => {
      const isAsked = authorizationModes.includes('Webhook')
      const isGiven = authorizationWebhookConfigFile !== undefined
      if (isAsked === isGiven) return undefined
      return isAsked
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
    throw new Mistake(`${quote(item)} has a * in the middle: it can only stand at the end`)
  }
  return item
}
