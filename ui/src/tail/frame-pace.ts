import type { Pace } from '../api/watch.ts'

/** Time budget per frame; the rest of the 16 ms is for painting and input. */
const SLICE_MS = 6
/** A hidden tab gets no animation frames, but timers still fire. */
const FRAME_MS_MAX = 100

/** The browser's clock and frames. */
export function framePace(): Pace {
  let sliceEndsMs = 0
  return {
    nowMs: () => Date.now(),
    random: () => Math.random(),
    sleep,
    rest: () => {
      if (performance.now() < sliceEndsMs) return undefined
      return nextFrame().then(() => {
        sliceEndsMs = performance.now() + SLICE_MS
      })
    },
  }
}

function nextFrame(): Promise<void> {
  return new Promise((resolve) => {
    const frame = requestAnimationFrame(() => {
      clearTimeout(timer)
      resolve()
    })
    const timer = setTimeout(() => {
      cancelAnimationFrame(frame)
      resolve()
    }, FRAME_MS_MAX)
  })
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
  })
}
