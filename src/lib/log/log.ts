import { newLineBudget, plainFields, plainText } from './log-fields.ts'
import { formatJson, formatText, type LogRecord } from './log-text.ts'

/** The variable part of a message. Values are truncated, escaped and redacted. */
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
  /** `err` prints the message and those of its causes. For a bug, add `stack: error.stack`. */
  error(msg: string, fields?: LogFields & { readonly err?: unknown }): void
  /** Printed only when the verbosity (`-v`) is at least `level`. */
  v(level: number, msg: string, fields?: LogFields): void
  /** Whether `v(level, …)` prints; to be checked before computing expensive fields. */
  enabled(level: number): boolean
  /** The same log with fields on every line. `logger` among them names the component. */
  child(fields: LogFields): Log
}

/** The parent of all other logs. */
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
  const { format, pid, sink, wallTime = microsecondTime() } = config
  const write = (record: LogRecord): void => {
    sink.write(`${format === 'json' ? formatJson(record) : formatText(record, pid)}\n`)
  }
  return new FormattedLog({ write, wallTime }, { level: config.verbosity }, 'main', {})
}

/** Discards everything. */
export const silentLog: Log = {
  info: () => {},
  warn: () => {},
  error: () => {},
  v: () => {},
  enabled: () => false,
  child: () => silentLog,
}

interface Output {
  readonly write: (record: LogRecord) => void
  readonly wallTime: () => number
}

class FormattedLog implements RootLog {
  readonly #output: Output
  /** Shared with the children. */
  readonly #verbosity: { level: number }
  readonly #name: string
  readonly #bound: LogFields

  constructor(output: Output, verbosity: { level: number }, name: string, bound: LogFields) {
    this.#output = output
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
    return new FormattedLog(this.#output, this.#verbosity, name, bound)
  }

  #print(msg: string, own: Pick<LogRecord, 'v' | 'severity'>, fields: LogFields): void {
    const budget = newLineBudget()
    this.#output.write({
      ts: this.#output.wallTime(),
      logger: this.#name,
      msg: plainText(msg, budget),
      ...own,
      ...this.#bound,
      ...plainFields(withoutReserved(fields), budget),
    })
  }
}

/** The parts of a line that are not fields. */
const reserved = ['ts', 'logger', 'msg', 'severity', 'v']

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
