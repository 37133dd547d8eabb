/**
 * `died`: the process ended during the call, and it is not known what the call did. `timeout`: the
 * call took longer than it may. `busy`: too many calls wait. `lost`: the segment was in a process
 * that ended; see `WriteJobs`. `memory`: DuckDB needs more memory or disk space than it may use.
 * `closed`: the server stops. `failed`: everything else.
 */
export type EngineErrorKind = 'died' | 'timeout' | 'busy' | 'lost' | 'memory' | 'closed' | 'failed'

export class EngineError extends Error {
  override readonly name: string = 'EngineError'
  readonly kind: EngineErrorKind

  constructor(kind: EngineErrorKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

/** The process ended, or was killed, before it answered. The next call starts another one. */
export class EngineDied extends EngineError {
  override readonly name = 'EngineDied'

  constructor(message: string) {
    super('died', message)
  }
}
