const POLL_INTERVAL_MS = 1000

/** A value that is loaded from files, which may be replaced while the server runs. */
export interface Followed<T> {
  readonly inUse: T
  /** Reads the files; returns `current` itself when their content is unchanged. */
  readonly load: (current: T) => Promise<T>
  /** Applies a new value. An error that it throws is reported to `onProblem`. */
  readonly onChange: (found: T) => void
  /** Called when the files are invalid, once for each different problem. */
  readonly onProblem: (problem: unknown) => void
  /** Called when, after a problem, the files again have the content in use. */
  readonly onRecovered?: () => void
  readonly onPoll?: OnPoll | undefined
  /** Time between two polls. Default: one second. */
  readonly intervalMs?: number
}

/** Called after each poll with whether the content of the files is in use and whether it is new. */
export type OnPoll = (isUsable: boolean, hasChanged: boolean) => void

/**
 * Polls files and reports a new value when their content has changed. Polling is more reliable than
 * file-system notifications, which stop when a mounted secret is replaced by switching a symbolic
 * link. While the files are invalid, the current value stays in use. Nothing is reported after `stop`,
 * not even the result of a poll in progress.
 */
export function follow<T>(followed: Followed<T>): { stop(): void } {
  let current = followed.inUse
  let reported = ''
  let isBusy = false
  let isStopped = false
  const poll = async (): Promise<void> => {
    let hasChanged = false
    try {
      const found = await followed.load(current)
      if (isStopped) return
      hasChanged = found !== current
      if (hasChanged) followed.onChange(found)
      else if (reported !== '') followed.onRecovered?.()
      current = found
      reported = ''
    } catch (problem) {
      if (isStopped) return
      hasChanged = false
      if (String(problem) !== reported) followed.onProblem(problem)
      reported = String(problem)
    }
    followed.onPoll?.(reported === '', hasChanged)
  }
  const timer = setInterval(() => {
    if (isBusy) return
    isBusy = true
    void poll().finally(() => {
      isBusy = false
    })
  }, followed.intervalMs ?? POLL_INTERVAL_MS)
  timer.unref()
  const stop = (): void => {
    isStopped = true
    clearInterval(timer)
  }
  return { stop }
}
