import type { Log } from '../../src/lib/log.ts'

/** For what logs in passing while something else is tested. */
export const silentLog: Log = {
  info: () => {},
  warn: () => {},
  error: () => {},
  v: () => {},
  enabled: () => false,
  child: () => silentLog,
}
