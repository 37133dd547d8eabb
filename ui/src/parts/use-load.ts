import { useEffect, useState } from 'preact/hooks'
import { type ApiError, asApiError } from '../api/api-error.ts'
import { isAborted } from '../api/client.ts'
import { useHold } from './page.ts'

export interface Loaded<Data> {
  /**
   * Result of the last successful load for these inputs; a part of it while the first one is under
   * way.
   */
  readonly data: Data | undefined
  readonly error: ApiError | undefined
  readonly isLoading: boolean
}

/** What is requested, and when: time passes, but the question stays the same. */
export interface Inputs {
  readonly what: readonly unknown[]
  readonly when?: readonly unknown[]
}

const NOTHING = { data: undefined, error: undefined, isLoading: true }

/**
 * Loads when an input changes, and cancels the previous load. While the same question is asked
 * again, the old data or the old error stays until there is an answer, so that nothing flickers.
 * Data of another question is dropped, since nobody could see which one it answers. There is no
 * automatic refresh during a load. `load` may show parts of the data, which are used only if there
 * is no older data.
 */
export function useLoad<Data>(
  load: (signal: AbortSignal, show: (part: Data) => void) => Promise<Data>,
  { what, when = [] }: Inputs,
): Loaded<Data> {
  const [state, setState] = useState<Loaded<Data> & { readonly what: readonly unknown[] }>({
    ...NOTHING,
    what,
  })
  const isSame = state.what.every((value, index) => value === what[index])
  const { data, error, isLoading } = isSame ? state : NOTHING
  useHold(isLoading)
  useEffect(() => {
    const controller = new AbortController()
    const { signal } = controller
    const hasOlder = data !== undefined
    setState((before) => (isSame ? { ...before, isLoading: true } : { ...NOTHING, what }))
    const show = (part: Data): void => {
      if (!signal.aborted && !hasOlder) setState((before) => ({ ...before, data: part }))
    }
    load(signal, show).then(
      (found) => {
        if (!signal.aborted) setState({ data: found, error: undefined, isLoading: false, what })
      },
      (failure: unknown) => {
        if (signal.aborted || isAborted(failure)) return
        setState((before) => ({ ...before, error: asApiError(failure), isLoading: false }))
      },
    )
    return () => controller.abort()
  }, [...what, ...when])
  return { data, error, isLoading }
}
