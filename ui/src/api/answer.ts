/** Answers about events, which a replica also has from its memory while etcd does not respond. */
import { ApiError } from './api-error.ts'
import type { ApiClient, Ask } from './client.ts'

/** What to know about an answer before trusting it. */
export interface Basis {
  /** When it was received. */
  readonly atMs: number
  /** It is what the replica knew last: etcd does not respond. */
  readonly isFromMemory: boolean
  /** What the server finds odd, such as a mirror that does not follow. */
  readonly warnings: readonly string[]
}

/**
 * Asks for the newest state and, if etcd is what prevents it, once more for the state in the memory
 * of the replica. Not for a page behind another one: its state is that of the first page.
 */
export async function askWithMemory<Result>(
  client: Pick<ApiClient, 'get'>,
  path: string,
  { parameters, signal }: Pick<Ask, 'parameters' | 'signal'>,
): Promise<{ readonly result: Result; readonly basis: Basis }> {
  const ask = async (more: Readonly<Record<string, string>>): Promise<Result> => {
    warnings.clear()
    const onWarning = (text: string): unknown => warnings.add(text)
    return client.get<Result>(path, { parameters: { ...parameters, ...more }, signal, onWarning })
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

/** 503 and 504 are those of etcd, or of a replica that has no events yet, which says so again. */
function mayBeKnown(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 503 || error.code === 504)
}
