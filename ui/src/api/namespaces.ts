import type { ApiClient } from './client.ts'
import { clusterPath } from './paths.ts'

/** More are not suggested. */
const NAMESPACES_MAX = 500

/** The namespaces of a cluster that have events. */
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
