/** Identifies the user of the page and checks permissions. */
import type { ApiClient } from './client.ts'
import { clusterPath } from './paths.ts'

export interface Caller {
  readonly name: string
  readonly groups: readonly string[]
  readonly isAnonymous: boolean
  /** True if only the requested cluster knows the user. */
  readonly isOfCluster: boolean
}

const ANONYMOUS = 'system:anonymous'

/** Returns who the user is in a cluster. Other clusters may not know this user. */
export async function whoAmI(client: ApiClient, cluster: string): Promise<Caller> {
  const review = await client.post<{
    readonly status?: {
      readonly userInfo?: {
        readonly username?: string
        readonly groups?: readonly string[]
        readonly extra?: Readonly<Record<string, unknown>>
      }
    }
  }>(`${clusterPath(cluster)}apis/authentication.k8s.io/v1/selfsubjectreviews`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'SelfSubjectReview',
  })
  const { username = '', groups = [], extra = {} } = review.status?.userInfo ?? {}
  const isOfCluster = 'tidings.dev/cluster' in extra
  return { name: username, groups, isAnonymous: username === ANONYMOUS, isOfCluster }
}

export interface Access {
  readonly verb: string
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  readonly cluster: string
  /** Empty for all namespaces. */
  readonly namespace: string
}

export async function mayI(
  client: ApiClient,
  access: Access,
  signal?: AbortSignal,
): Promise<boolean> {
  const { cluster, ...resourceAttributes } = access
  const path = `${clusterPath(cluster)}apis/authorization.k8s.io/v1/selfsubjectaccessreviews`
  const asked = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes },
  }
  const review = await client.post<{ readonly status?: { readonly allowed?: boolean } }>(
    path,
    asked,
    { signal },
  )
  return review.status?.allowed === true
}

/** Exchanges the one-time code of `tidings dev` for a token. */
export async function tokenFor(client: ApiClient, code: string): Promise<string> {
  return (await client.post<{ readonly token: string }>('ui/sign-in', { code })).token
}
