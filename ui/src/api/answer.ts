/** Requests for events that fall back to the replica's memory while etcd does not respond. */
import { ApiError, isOfHistory } from './api-error.ts'
import type { ApiClient, Ask } from './client.ts'

/** The server takes up to 60 seconds, by default, before it gives up. */
const TIMEOUT_MS = 65_000

/** How far an answer can be trusted. */
export interface Basis {
  /** When the answer was received. */
  readonly atMs: number
  /** True if etcd did not respond and the answer is the replica's last known state. */
  readonly isFromMemory: boolean
  /** Warnings from the server, such as a mirror that is stalled. */
  readonly warnings: readonly string[]
}

/**
 * Requests the newest state and, if etcd prevents that, retries once with the state in the
 * replica's memory. Does not fall back for the second and later pages of a list: they have to be of
 * the same state as the first.
 */
export async function askWithMemory<Result>(
  client: Pick<ApiClient, 'get'>,
  path: string,
  { parameters, signal }: Pick<Ask, 'parameters' | 'signal'>,
): Promise<{ readonly result: Result; readonly basis: Basis }> {
  const ask = async (more: Readonly<Record<string, string>>): Promise<Result> => {
    warnings.clear()
    const onWarning = (text: string): unknown => warnings.add(text)
    const timeoutMs = TIMEOUT_MS
    return client.get<Result>(path, {
      ...{ parameters: { ...parameters, ...more }, signal, onWarning, timeoutMs },
    })
  }
  const warnings = new Set<string>()
  const basis = (isFromMemory: boolean): Basis => ({
    ...{ atMs: Date.now(), isFromMemory, warnings: [...warnings] },
  })
  try {
    const result = await ask({})
    return { result, basis: basis(false) }
  } catch (error) {
    if (!mayBeKnown(error) || parameters?.['continue'] !== undefined) throw error
    const result = await ask({ resourceVersion: '0' })
    return { result, basis: basis(true) }
  }
}

/**
 * 503 and 504 come from etcd, or from a replica that has no events yet and will fail again. Those
 * about history do not depend on etcd.
 */
function mayBeKnown(error: unknown): boolean {
  if (!(error instanceof ApiError) || isOfHistory(error)) return false
  return error.code === 503 || error.code === 504
}
