const LOOK_INTERVAL_MS = 1000

/** Something read from files that may be replaced while we run. */
export interface Followed<T> {
  readonly inUse: T
  /** Reads the files; gives `current` itself when they still say the same. */
  readonly load: (current: T) => Promise<T>
  /** Puts it to use; what it throws is a problem with the files as well. */
  readonly onChange: (found: T) => void
  /** The files cannot be used as they are now. Called once for each different problem. */
  readonly onProblem: (problem: unknown) => void
  /** They can be used again, and say what is in use. If they say something else, `onChange` hears it. */
  readonly onMended?: () => void
  readonly onLook?: OnLook | undefined
}

/** Hears after each look whether what the files say is in use, and whether that is new. */
export type OnLook = (isUsable: boolean, hasChanged: boolean) => void

/**
 * Looks at files once a second and reports what they say when it is not what is in use. Looking
 * beats being notified: mounted secrets are swapped by symbolic link, on which notifications of
 * the system go quiet. While the files cannot be used, what is in use stays. After `stop` nothing is
 * reported any more, not even of a look that is under way.
 */
export function follow<T>(followed: Followed<T>): { stop(): void } {
  let current = followed.inUse
  let reported = ''
  let isBusy = false
  let isStopped = false
  const look = async (): Promise<void> => {
    let hasChanged = false
    try {
      const found = await followed.load(current)
      if (isStopped) return
      hasChanged = found !== current
      if (hasChanged) followed.onChange(found)
      else if (reported !== '') followed.onMended?.()
      current = found
      reported = ''
    } catch (problem) {
      if (isStopped) return
      hasChanged = false
      if (String(problem) !== reported) followed.onProblem(problem)
      reported = String(problem)
    }
    followed.onLook?.(reported === '', hasChanged)
  }
  const timer = setInterval(() => {
    if (isBusy) return
    isBusy = true
    void look().finally(() => {
      isBusy = false
    })
  }, LOOK_INTERVAL_MS)
  timer.unref()
  const stop = (): void => {
    isStopped = true
    clearInterval(timer)
  }
  return { stop }
}
