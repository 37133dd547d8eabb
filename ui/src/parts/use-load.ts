import { useEffect, useRef, useState } from 'preact/hooks'
import { type ApiError, asApiError } from '../api/api-error.ts'
import { isAborted } from '../api/client.ts'
import { useHold } from './page.ts'

/** A load that the user can cancel. */
export interface Work {
  readonly isLoading: boolean
  readonly isCancelled: boolean
  /** Does nothing unless it is loading. */
  readonly cancel: () => void
  /** Does nothing unless it was cancelled. */
  readonly goOn: () => void
}

export interface Loaded<Data> extends Work {
  /**
   * Result of the last successful load for these inputs; a part of it while the first one is under
   * way, or after it was cancelled.
   */
  readonly data: Data | undefined
  readonly isPart: boolean
  readonly error: ApiError | undefined
}

/** What is requested, and when: time passes, but the question stays the same. */
export interface Inputs {
  readonly what: readonly unknown[]
  readonly when?: readonly unknown[]
}

const NOTHING = {
  ...{ data: undefined, isPart: false, error: undefined, isLoading: true, isCancelled: false },
}

/**
 * Loads when an input changes, and cancels the previous load. While the same question is asked
 * again, the old data or the old error stays until there is an answer, so that nothing flickers.
 * Data of another question is dropped, since nobody could see which one it answers. There is no
 * automatic refresh during a load. `load` may show parts of the data, which are used only if there
 * is no older data; after it was cancelled, it goes on from the last part.
 */
export function useLoad<Data>(
  load: (
    signal: AbortSignal,
    show: (part: Data) => void,
    before: Data | undefined,
  ) => Promise<Data>,
  { what, when = [] }: Inputs,
): Loaded<Data> {
  const [state, setState] = useState<
    Omit<Loaded<Data>, 'cancel' | 'goOn'> & { readonly what: readonly unknown[] }
  >({ ...NOTHING, what })
  const isSame = state.what.every((value, index) => value === what[index])
  const { data, isPart, error, isLoading, isCancelled } = isSame ? state : NOTHING
  const controller = useRef<AbortController>(undefined)
  const part = useRef<Data>(undefined)
  const isResumed = useRef(false)
  const [turn, setTurn] = useState(0)
  useHold(isLoading)
  useEffect(() => {
    controller.current = new AbortController()
    const { signal } = controller.current
    const before = isResumed.current && isSame ? part.current : undefined
    part.current = before
    isResumed.current = false
    const hasOlder = data !== undefined && !isCancelled
    setState((now) =>
      isSame ? { ...now, isLoading: true, isCancelled: false } : { ...NOTHING, what },
    )
    const show = (found: Data): void => {
      if (signal.aborted) return
      part.current = found
      if (!hasOlder) setState((now) => ({ ...now, data: found, isPart: true }))
    }
    load(signal, show, before).then(
      (found) => {
        if (!signal.aborted) setState({ ...NOTHING, data: found, isLoading: false, what })
      },
      (failure: unknown) => {
        if (signal.aborted || isAborted(failure)) return
        setState((now) => ({ ...now, error: asApiError(failure), isLoading: false }))
      },
    )
    return () => controller.current?.abort()
  }, [...what, ...when, turn])
  const cancel = (): void => {
    if (!isLoading) return
    controller.current?.abort()
    setState((now) => ({ ...now, isLoading: false, isCancelled: true }))
  }
  const goOn = (): void => {
    if (!isCancelled) return
    isResumed.current = true
    setTurn(turn + 1)
  }
  return { data, isPart, error, isLoading, isCancelled, cancel, goOn }
}
