/** A log line as parsed from its JSON form. */
export interface LogRecord {
  /** Milliseconds since 1970, with fractions. */
  readonly ts: number
  readonly logger?: string
  readonly msg: string
  readonly severity?: 'warning' | 'error'
  readonly v?: number
  readonly [field: string]: unknown
}

/** Not printed as fields: the header has them, or the text format omits them. */
const headerKeys = new Set(['ts', 'logger', 'msg', 'severity', 'v'])

/**
 * One line in klog's format: `I1115 00:18:45.123456    4242 http] "Serving securely" port=6443`.
 *
 * klog prints the caller's file and line before the bracket. In Node, finding them costs more than
 * the rest of the line, so the name of the component is printed there. Strings are always quoted on
 * one line, where klog may use several: so a client cannot send a text that looks like a log line.
 */
export function formatText(record: LogRecord, pid: number): string {
  const letter = record.severity === undefined ? 'I' : record.severity === 'error' ? 'E' : 'W'
  const head = `${letter}${timeText(record.ts)} ${String(pid).padStart(7)} ${record.logger ?? 'main'}]`
  let line = `${head} ${JSON.stringify(record.msg)}`
  for (const key in record) {
    if (!headerKeys.has(key)) line += ` ${keyText(key)}=${JSON.stringify(record[key])}`
  }
  return escapeTerminalControls(line)
}

/**
 * Escapes the characters that JSON leaves unescaped but a terminal may interpret: C1 controls, line
 * and paragraph separators, and marks that change the direction of writing. In JSON these occur
 * only inside strings, so a whole line may be passed.
 */
export function escapeTerminalControls(line: string): string {
  return line.replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function keyText(key: string): string {
  return /^[\w./-]+$/.test(key) ? key : JSON.stringify(key)
}

/** `mmdd hh:mm:ss.uuuuuu` in local time, as in klog. */
function timeText(ts: number): string {
  const micros = Math.floor(ts * 1000)
  const date = new Date(Math.floor(micros / 1000))
  const day = two(date.getMonth() + 1) + two(date.getDate())
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  return `${day} ${time}.${String(micros % 1_000_000).padStart(6, '0')}`
}

function two(number: number): string {
  return String(number).padStart(2, '0')
}
