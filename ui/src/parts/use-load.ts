import { useEffect, useState } from 'preact/hooks'
import { type ApiError, asApiError } from '../api/api-error.ts'
import { isAborted } from '../api/client.ts'
import { useHold } from './page.ts'

export interface Loaded<Data> {
  /** Of the last load that succeeded with these inputs or earlier ones. */
  readonly data: Data | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
}

/**
 * Loads when `inputs` change, and cancels the load before. The old data, or the old error, stays
 * until there is an answer, so that nothing flickers. There is no automatic refresh meanwhile.
 */
export function useLoad<Data>(
  load: (signal: AbortSignal) => Promise<Data>,
  inputs: readonly unknown[],
): Loaded<Data> {
  const [state, setState] = useState<Loaded<Data>>({
    data: undefined,
    error: undefined,
    isLoading: true,
  })
  useHold(state.isLoading)
  useEffect(() => {
    const controller = new AbortController()
    setState((before) => ({ ...before, isLoading: true }))
    load(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ data, error: undefined, isLoading: false })
      },
      (error: unknown) => {
        if (controller.signal.aborted || isAborted(error)) return
        setState(({ data }) => ({ data, error: asApiError(error), isLoading: false }))
      },
    )
    return () => controller.abort()
  }, inputs)
  return state
}
