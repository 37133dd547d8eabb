/**
 * Resolves after `ms`, or as soon as the signal aborts; never rejects. The caller checks the signal
 * afterwards.
 */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve()
      return
    }
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** Waits for `work`, at most `msMax`. The work is not cancelled; a later result is ignored. */
export async function within(msMax: number, work: Promise<unknown>): Promise<void> {
  const bound = new AbortController()
  try {
    await Promise.race([work, pause(msMax, bound.signal)])
  } finally {
    bound.abort()
  }
}
