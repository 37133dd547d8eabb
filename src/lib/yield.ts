/** Resolves in the next event-loop tick, so that pending I/O and timers run first. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
