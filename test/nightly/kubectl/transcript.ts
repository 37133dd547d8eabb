/**
 * Sessions with kubectl as text: a command after `$ `, its output, and its exit code. Lines that
 * begin with `#` are remarks about the next command.
 */

export interface Exchange {
  /** The command as it was typed, `kubectl` included. */
  readonly command: string
  readonly output: string
  readonly exitCode: number
  /** The remark before it. */
  readonly remark: string
}

const EXCHANGE = /((?:^#.*\n)*)^\$ (.*)\n([\s\S]*?)^\[exit (\d+)\]$/gm

export function parseTranscript(text: string): readonly Exchange[] {
  const left = text.replaceAll(EXCHANGE, '').trim()
  if (left !== '') throw new Error(`neither a command nor what it printed: ${left}`)
  return [...text.matchAll(EXCHANGE)].map(([, remark = '', command = '', output = '', code]) => ({
    command,
    output,
    exitCode: Number(code),
    remark: remark.replaceAll(/^# ?/gm, '').trim(),
  }))
}

const AGE = /(?<![\w.-])(?:<unknown>|\d+[ydhms](?:\d+[hms])?)(?![\w.:-])/g

/**
 * The output without values that differ each time: ids, versions, times of the server, ages, and
 * with them the width of a table's columns. Descriptions differ between servers, and the client
 * version between releases.
 */
export function normalOutput(output: string): string {
  const lines = output
    .replaceAll(/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '<uid>')
    .replaceAll(/(resourceVersion: |Resource Version: +)"?\d+"?/g, '$1<version>')
    .replaceAll(/"?\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"?/g, '<time>')
    .replaceAll(/^(Client|Kustomize) Version: .*\n|^WARNING: .*version.*\n/gm, '')
    .replaceAll(/^(Server Version: ).*(v1\.\d+)\.\d+\+tidings-[\d.]+.*$/gm, '$1$2 tidings')
    .split('\n')
    .map((line) => tableLine(line.trimEnd()))
  return withoutDescriptions(lines).join('\n').trimEnd()
}

function tableLine(line: string): string {
  const aged = line.replaceAll(AGE, '<age>')
  const isOfTable = aged !== line || /^(EVENT +)?(NAMESPACE +)?LAST SEEN/.test(line)
  return isOfTable ? aged.replaceAll(/ {2,}/g, '  ') : line
}

/** `explain` prints descriptions indented below what they describe. */
function withoutDescriptions(lines: readonly string[]): readonly string[] {
  if (!lines.includes('DESCRIPTION:')) return lines
  const kept: string[] = []
  for (const line of lines) {
    if (!/^ {4,}(?!\w+\t<)/.test(line)) kept.push(line)
    else if (kept.at(-1) !== WORDS) kept.push(WORDS)
  }
  return kept
}

const WORDS = "    (in the server's own words)"
