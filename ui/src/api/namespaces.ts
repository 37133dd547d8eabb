import type { ApiClient } from './client.ts'
import { clusterPath } from './paths.ts'

/** Limit of suggested namespaces. */
const NAMESPACES_MAX = 500

/** Returns the namespaces of a cluster that contain events. */
export async function listNamespaces(
  client: ApiClient,
  cluster: string,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const path = `${clusterPath(cluster)}api/v1/namespaces`
  const list = await client.get<{
    readonly items?: readonly { readonly metadata?: { readonly name?: string } }[] | null
  }>(path, { parameters: { limit: String(NAMESPACES_MAX) }, signal })
  return (list.items ?? []).map(({ metadata }) => metadata?.name ?? '')
}
