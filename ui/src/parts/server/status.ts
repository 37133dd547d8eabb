/** The server's status, for the footer and for views that show how far back events go. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { ApiError } from '../../api/api-error.ts'
import type { Check } from '../../model/server/health.ts'
import type { RetentionWindow } from '../../model/server/retention.ts'

export interface ServerStatus {
  /** Undefined until known. */
  readonly checks: readonly Check[] | undefined
  /** Why the checks are unknown. */
  readonly checksError: ApiError | undefined
  /**
   * The window of the displayed namespace and cluster. Undefined until known, or without events.
   */
  readonly window: RetentionWindow | undefined
  readonly windowError: ApiError | undefined
  /** Whether the window is known: if so, an undefined window is an empty one. */
  readonly isWindowKnown: boolean
  /** Whether the server is known to have history, of whatever place. */
  readonly hasHistory: boolean
  /** Empty until known. */
  readonly version: string
}

export interface PolledStatus extends ServerStatus {
  /** When the server last responded. */
  readonly atMs: number | undefined
  /** Why the server does not respond now. */
  readonly error: ApiError | undefined
  readonly again: () => void
}

export const StatusContext: ReturnType<typeof createContext<PolledStatus | undefined>> =
  createContext<PolledStatus | undefined>(undefined)

export function useServerStatus(): PolledStatus {
  const status = useContext(StatusContext)
  if (status === undefined) throw new Error('there is no status around this part')
  return status
}
