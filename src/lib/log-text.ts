/** A line of the log as JSON has it, before it is given a form. */
export interface LogRecord {
  /** Milliseconds since 1970, with fractions. */
  readonly ts: number
  readonly logger?: string
  readonly msg: string
  readonly severity?: 'warning' | 'error'
  readonly v?: number
  readonly [field: string]: unknown
}

/** Printed in the header or not at all. */
const headerKeys = new Set(['ts', 'logger', 'msg', 'severity', 'v'])

/**
 * One line in klog's form: `I1115 00:18:45.123456    4242 http] "Serving securely" port=6443`.
 *
 * klog has the caller's file and line before the bracket; finding those out costs more here than
 * the rest of the line, so the component's name stands there. Texts are always quoted on the same
 * line, where klog may spread one over several: what a client sent cannot look like a line.
 */
export function formatText(record: LogRecord, pid: number): string {
  const letter = record.severity === undefined ? 'I' : record.severity === 'error' ? 'E' : 'W'
  const head = `${letter}${timeText(record.ts)} ${String(pid).padStart(7)} ${record.logger ?? 'main'}]`
  let line = `${head} ${JSON.stringify(record.msg)}`
  for (const key in record) {
    if (!headerKeys.has(key)) line += ` ${keyText(key)}=${JSON.stringify(record[key])}`
  }
  return escapeRest(line)
}

/**
 * Escapes what JSON lets through but a terminal may obey: C1 controls, line and paragraph
 * separators, and marks that turn the direction of writing. In JSON these can only stand inside
 * strings, so a whole line may be passed.
 */
export function escapeRest(line: string): string {
  return line.replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

function keyText(key: string): string {
  return /^[\w./-]+$/.test(key) ? key : JSON.stringify(key)
}

/** `mmdd hh:mm:ss.uuuuuu` in local time, as klog has it. */
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
