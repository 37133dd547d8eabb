import { type Command, type Flag, type Topic, topics } from './flag.ts'

const columnsDefault = 100
const columnsMin = 40
const indent = 16

/** A flag as printed in the help and the documentation. */
export interface ShownFlag {
  readonly name: string
  readonly short: string | undefined
  /** Empty for flags that need no value. */
  readonly placeholder: string
  readonly help: string
  readonly default: string | undefined
}

/** The command's flags by topic, in the style of kube-apiserver. */
export function helpText<O>(command: Command<O>, columns: number = columnsDefault): string {
  const width = Math.max(columnsMin, Math.min(columns, columnsDefault))
  const lines = [...wrap(command.summary, width), '', 'Usage:']
  const { subcommands = [] } = command
  const commands = [command, ...subcommands]
  lines.push(...commands.map(({ name, usage = '[flags]' }) => `  ${name} ${usage}`))
  for (const { name, summary } of subcommands) {
    const [first = '', ...rest] = summary
    lines.push('', ...wrap(`${name} ${first.toLowerCase()}${rest.join('')}`, width))
  }
  for (const [topic, flags] of flagsByTopic(command)) {
    lines.push('', `${topic} flags:`)
    for (const flag of flags) lines.push('', ...flagLines(flag, width))
  }
  return `${lines.join('\n')}\n`
}

/** The flags that the command accepts, keyed by topic and sorted by name. */
export function flagsByTopic<O>(command: Command<O>): ReadonlyMap<Topic, readonly ShownFlag[]> {
  const keys = (Object.keys(command.flags) as (keyof O)[]).filter(
    (key) => command.decided[key] === undefined,
  )
  const rows = [
    ...builtIns,
    ...keys.map((key) => [command.flags[key].topic, shown(command.flags[key])] as const),
  ]
  const byTopic = new Map<Topic, readonly ShownFlag[]>()
  for (const topic of topics) {
    const flags = rows.filter((row) => row[0] === topic).map((row) => row[1])
    flags.sort((a, b) => (a.name < b.name ? -1 : 1))
    if (flags.length > 0) byTopic.set(topic, flags)
  }
  return byTopic
}

// The two flags that print something instead of running the command.
const builtIns: readonly (readonly [Topic, ShownFlag])[] = [
  ['Misc', builtIn('help', 'h', 'Print this text and exit.')],
  ['Misc', builtIn('version', undefined, 'Print the version and exit.')],
]

function builtIn(name: string, short: string | undefined, help: string): ShownFlag {
  return { name, short, placeholder: '', help, default: undefined }
}

function shown<T>(flag: Flag<T>): ShownFlag {
  const { kind } = flag
  const value = kind.print(flag.default)
  return {
    name: flag.name,
    short: flag.short,
    placeholder: kind.bare ? '' : kind.placeholder,
    help: flag.help,
    default: kind.bare && value === 'false' ? undefined : value,
  }
}

function flagLines(flag: ShownFlag, width: number): string[] {
  const short = flag.short === undefined ? '      ' : `  -${flag.short}, `
  const value = flag.placeholder === '' ? '' : ` ${flag.placeholder}`
  const tail = flag.default === undefined ? '' : ` (default ${flag.default})`
  const text = wrap(flag.help + tail, width - indent)
  return [`${short}--${flag.name}${value}`, ...text.map((line) => ' '.repeat(indent) + line)]
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line]
}
