import { type Logger, pino } from 'pino'
import { newLineBudget, plainFields, plainText } from './log-fields.ts'
import { escapeTerminalControls, formatText, type LogRecord } from './log-text.ts'

/** The variable part of a message. Values are cut, escaped and redacted before they are written. */
export type LogFields = Readonly<Record<string, unknown>>

/**
 * The server's log. Calls never throw and never block.
 *
 * Messages are constant sentences; variable data goes into fields. A field whose name suggests a
 * secret is printed as `[redacted]`; `key` is such a name, so call an etcd key `etcdKey`.
 */
export interface Log {
  info(msg: string, fields?: LogFields): void
  warn(msg: string, fields?: LogFields): void
  /** `err` prints the message and those of its causes; for a bug, add `stack: error.stack`. */
  error(msg: string, fields?: LogFields & { readonly err?: unknown }): void
  /** Printed only when the verbosity (`-v`) is at least `level`. */
  v(level: number, msg: string, fields?: LogFields): void
  /** Whether `v(level, …)` prints: check it before computing expensive fields. */
  enabled(level: number): boolean
  /** The same log with fields on every line. `logger` among them names the component. */
  child(fields: LogFields): Log
}

/** The log that all others are children of. */
export interface RootLog extends Log {
  /** Sets the verbosity of this log and of all its children. */
  setVerbosity(level: number): void
}

/** The destination of formatted lines: a LogWriter, or a fake in tests. */
export interface LineSink {
  write(line: string): void
}

export interface LogConfig {
  readonly format: 'text' | 'json'
  /** `-v`: 0 to 10. */
  readonly verbosity: number
  readonly sink: LineSink
  readonly pid: number
  /** Milliseconds since 1970, with fractions; the wall clock unless a test replaces it. */
  readonly wallTime?: () => number
}

export function createLog(config: LogConfig): RootLog {
  const { format, pid } = config
  const wallTime = config.wallTime ?? microsecondTime()
  const logger = pino(
    {
      base: null,
      level: 'info',
      // The severity is a field of our own, because the JSON of Kubernetes' logs has no level.
      formatters: { level: () => ({}) },
      // Errors are sanitised before they get here; pino must neither inspect nor format them.
      errorKey: 'pinoError',
      serializers: { err: (text: unknown) => text },
      // Comes first in the object, without a comma, because there is no level before it.
      timestamp: () => `"ts":${wallTime().toFixed(3)}`,
      hooks: {
        streamWrite: (line) =>
          format === 'json'
            ? escapeTerminalControls(line)
            : `${formatText(JSON.parse(line) as LogRecord, pid)}\n`,
      },
    },
    config.sink,
  )
  return new PinoLog(logger, { level: config.verbosity }, 'main', {})
}

/** Discards everything: for tests, and for code that runs before the log exists. */
export const silentLog: Log = {
  info: () => {},
  warn: () => {},
  error: () => {},
  v: () => {},
  enabled: () => false,
  child: () => silentLog,
}

class PinoLog implements RootLog {
  readonly #pino: Logger
  /** Shared with the children. */
  readonly #verbosity: { level: number }
  readonly #name: string
  readonly #bound: LogFields

  constructor(logger: Logger, verbosity: { level: number }, name: string, bound: LogFields) {
    this.#pino = logger
    this.#verbosity = verbosity
    this.#name = name
    this.#bound = bound
  }

  info(msg: string, fields: LogFields = {}): void {
    this.#print(msg, { v: 0 }, fields)
  }

  warn(msg: string, fields: LogFields = {}): void {
    this.#print(msg, { severity: 'warning', v: 0 }, fields)
  }

  error(msg: string, fields: LogFields = {}): void {
    const { err, ...rest } = fields
    // As in klog, `err` is the first field, and an error has no verbosity.
    this.#print(msg, { severity: 'error' }, err === undefined ? rest : { err, ...rest })
  }

  v(level: number, msg: string, fields: LogFields = {}): void {
    if (this.enabled(level)) this.#print(msg, { v: level }, fields)
  }

  enabled(level: number): boolean {
    return level <= this.#verbosity.level
  }

  setVerbosity(level: number): void {
    this.#verbosity.level = level
  }

  child(fields: LogFields): Log {
    const { logger, ...rest } = fields
    const name = typeof logger === 'string' && /^[\w./-]{1,64}$/.test(logger) ? logger : this.#name
    const bound = { ...this.#bound, ...plainFields(withoutReserved(rest), newLineBudget()) }
    return new PinoLog(this.#pino, this.#verbosity, name, bound)
  }

  #print(msg: string, own: { v?: number; severity?: string }, fields: LogFields): void {
    const budget = newLineBudget()
    const record = {
      logger: this.#name,
      msg: plainText(msg, budget),
      ...own,
      ...this.#bound,
      ...plainFields(withoutReserved(fields), budget),
    }
    this.#pino.info(record)
  }
}

// The parts of a line, and `socket`, by which pino recognises an HTTP request of Node.
const reserved = ['ts', 'logger', 'msg', 'severity', 'v', 'socket', 'pinoError']

/** Renames the fields that have a reserved name, so that they do not replace a part of the line. */
function withoutReserved(fields: LogFields): LogFields {
  if (!reserved.some((name) => Object.hasOwn(fields, name))) return fields
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      reserved.includes(name) ? `${name}_` : name,
      value,
    ]),
  )
}

// The wall clock has a resolution of 1 ms; a larger difference means that it was set.
const driftMsMax = 2

/** The wall clock, in milliseconds, with the finer resolution of the monotonic clock. */
export function microsecondTime(): () => number {
  let origin = performance.timeOrigin
  return () => {
    const wall = Date.now()
    const fine = origin + performance.now()
    if (Math.abs(fine - wall) <= driftMsMax) return fine
    origin = wall - performance.now()
    return wall
  }
}
