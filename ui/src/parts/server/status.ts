/** What the server says about itself, for the footer and for views that show how far back it goes. */
import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { ApiError } from '../../api/api-error.ts'
import type { Check } from '../../model/server/health.ts'
import type { KeptWindow } from '../../model/server/retention.ts'

export interface ServerStatus {
  /** Undefined until it is known. */
  readonly checks: readonly Check[] | undefined
  /** Why the checks are not known. */
  readonly checksError: ApiError | undefined
  /** Of the namespace and the cluster that are shown. Undefined until it is known, or without events. */
  readonly window: KeptWindow | undefined
  readonly windowError: ApiError | undefined
  /** Whether the server has told what is kept there: if so, an undefined window is an empty one. */
  readonly isWindowKnown: boolean
  /** Empty until it is known. */
  readonly version: string
}

export interface PolledStatus extends ServerStatus {
  /** When the server has last responded. */
  readonly atMs: number | undefined
  /** Why it does not respond now. */
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
