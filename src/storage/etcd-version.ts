/** Earlier releases answer reads with stale data after a pause and lose the progress of watches. */
const OLDEST_GOOD = [3, 5, 28] as const

/** Whether a release such as `3.5.30` or `3.6.0-rc.1` is one to trust events to. */
export function isGoodEtcdVersion(version: string): boolean {
  const parts = version.split(/[.+-]/).map(Number)
  for (const [index, wanted] of OLDEST_GOOD.entries()) {
    const part = parts[index]
    if (part === undefined || Number.isNaN(part)) return false
    if (part !== wanted) return part > wanted
  }
  return true
}
