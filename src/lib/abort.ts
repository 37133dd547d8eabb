/** Resolves after `ms`, or at once when the signal aborts; never rejects. Look at the signal after. */
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

/** Waits for `work`, but no longer than this; what becomes of it afterwards is not looked at. */
export async function within(msMax: number, work: Promise<unknown>): Promise<void> {
  const bound = new AbortController()
  try {
    await Promise.race([work, pause(msMax, bound.signal)])
  } finally {
    bound.abort()
  }
}
