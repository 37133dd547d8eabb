/** A log line whose fields are sanitised. */
export interface LogRecord {
  /** Milliseconds since 1970, with fractions. */
  readonly ts: number
  readonly logger: string
  readonly msg: string
  readonly severity?: 'warning' | 'error'
  readonly v?: number
  readonly [field: string]: unknown
}

/** Not printed as fields: they are in the header, or omitted from the text format (`v`). */
const headerKeys = new Set(['ts', 'logger', 'msg', 'severity', 'v'])

/** One line in the JSON format of Kubernetes components: `ts` first, with microsecond digits. */
export function formatJson({ ts, ...record }: LogRecord): string {
  return escapeTerminalControls(`{"ts":${ts.toFixed(3)},${JSON.stringify(record).slice(1)}`)
}

/**
 * One line in klog's format: `I1115 00:18:45.123456    4242 http] "Serving securely" port=6443`.
 *
 * klog prints the caller's file and line before the bracket. In Node, finding them costs more than the
 * rest of the line, so the logger's name takes their place. Strings are always quoted on one
 * line, where klog may use several, so that a client cannot send text that looks like a log line.
 */
export function formatText(record: LogRecord, pid: number): string {
  const letter = record.severity === undefined ? 'I' : record.severity === 'error' ? 'E' : 'W'
  const head = `${letter}${timeText(record.ts)} ${String(pid).padStart(7)} ${record.logger}]`
  let line = `${head} ${JSON.stringify(record.msg)}`
  for (const key in record) {
    if (!headerKeys.has(key)) line += ` ${keyText(key)}=${JSON.stringify(record[key])}`
  }
  return escapeTerminalControls(line)
}

/**
 * Escapes characters that JSON leaves unescaped but a terminal may interpret: DEL, C1 controls, line
 * and paragraph separators, bidi controls and the BOM. Outside of JSON strings a line is plain ASCII,
 * so a whole line may be passed.
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
  const day = pad2(date.getMonth() + 1) + pad2(date.getDate())
  const time = `${pad2(date.getHours())}:${pad2(date.getMinutes())}:${pad2(date.getSeconds())}`
  return `${day} ${time}.${String(micros % 1_000_000).padStart(6, '0')}`
}

function pad2(number: number): string {
  return String(number).padStart(2, '0')
}
