import { type EtcdOptions, etcdRules } from './etcd-rules.ts'
import type { Command, FlagTable, Rule, Subcommand } from './flag.ts'
import { optionalTime, text } from './kinds.ts'
import { type Options, serverFlags } from './options.ts'
import { type ParseResult, parseFlags } from './parse.ts'
import { archive, labelMistake } from './values.ts'

/** What every command needs that works on history. */
export interface ArchiveOptions
  extends EtcdOptions,
    Pick<Options, 'etcdPrefix' | 'historyCacheDir' | 'loggingFormat' | 'verbosity'> {
  /** Not empty; as in `Options`. */
  readonly history: string
}

export interface PurgeOptions extends ArchiveOptions {
  /** Neither is empty. */
  readonly cluster: string
  readonly namespace: string
  /** Only events that were last seen before. */
  readonly beforeMs: number | undefined
}

/** A command on history, as it was typed. */
export type HistoryCommand =
  | { readonly verb: 'verify' | 'recover'; readonly options: ArchiveOptions }
  | { readonly verb: 'purge'; readonly options: PurgeOptions }

const archiveFlags: FlagTable<ArchiveOptions> = {
  history: {
    ...serverFlags.history,
    kind: archive,
    default: '',
    help: 'The directory or bucket of history, as in --history of the server. Required.',
  },
  historyCacheDir: {
    ...serverFlags.historyCacheDir,
    help: 'Folder for copies of files from a bucket. No server may use the same one. Default: a temporary folder, which is deleted at the end.',
  },
  etcdServers: serverFlags.etcdServers,
  etcdCaFile: serverFlags.etcdCaFile,
  etcdCertFile: serverFlags.etcdCertFile,
  etcdKeyFile: serverFlags.etcdKeyFile,
  etcdPrefix: serverFlags.etcdPrefix,
  loggingFormat: serverFlags.loggingFormat,
  verbosity: serverFlags.verbosity,
}

const archiveRules: readonly Rule<ArchiveOptions>[] = [
  required(archiveFlags, 'history', 's3://my-bucket/tidings'),
  ...etcdRules(),
]

const verify: Command<ArchiveOptions> = {
  name: 'tidings history verify',
  usage: '--history url --etcd-servers urls [flags]',
  summary:
    'Reads every file of history and compares it with the catalogue: size, hash, rows and times. Changes nothing. Exits with 1 when a file is missing or damaged.',
  flags: archiveFlags,
  rules: archiveRules,
  decided: {},
}

const recover: Command<ArchiveOptions> = {
  name: 'tidings history recover',
  usage: '--history url --etcd-servers urls [flags]',
  summary:
    'Makes the newest complete catalogue in the directory or bucket the current one, after etcd was restored or lost. Refuses while etcd has a newer one.',
  flags: archiveFlags,
  rules: archiveRules,
  decided: {},
}

const purgeFlags: FlagTable<PurgeOptions> = {
  ...archiveFlags,
  cluster: {
    name: 'cluster',
    topic: 'Purge',
    kind: text('name', labelMistake),
    default: '',
    help: 'The cluster whose events are removed. Required.',
  },
  namespace: {
    name: 'namespace',
    topic: 'Purge',
    kind: text('name', (value) => labelMistake(value, 'namespace')),
    default: '',
    help: 'The namespace whose events are removed. Required.',
  },
  beforeMs: {
    name: 'before',
    topic: 'Purge',
    kind: optionalTime,
    default: undefined,
    help: 'Remove only events that were last seen before this time, such as 2026-01-31T18:00:00Z, or before this day in UTC, such as 2026-01-31. Default: all.',
  },
}

const purge: Command<PurgeOptions> = {
  name: 'tidings history purge',
  usage:
    '--cluster name --namespace name [--before time] --history url --etcd-servers urls [flags]',
  summary:
    'Removes the events of a namespace from history: files are written again without them, and the old files are deleted. Cannot be undone. Events in etcd are not affected.',
  flags: purgeFlags,
  rules: [
    required(purgeFlags, 'cluster', 'prod'),
    required(purgeFlags, 'namespace', 'shop'),
    ...archiveRules,
  ],
  decided: {},
}

/** For the documentation: the second has flags that the others do not have. */
export const historyCommands: readonly [
  Command<ArchiveOptions>,
  Command<PurgeOptions>,
  Command<ArchiveOptions>,
] = [verify, purge, recover]

/** What the help of `tidings` says. */
export const history: Subcommand = {
  name: 'tidings history',
  usage: 'verify|purge|recover [flags]',
  summary:
    'Verifies the files of --history, removes events from them, or recovers their catalogue.',
}

/** `tidings history` itself only explains. */
const overview: Command<object> = {
  ...history,
  subcommands: historyCommands,
  flags: {},
  rules: [{ about: [], check: () => 'a command is missing: write verify, purge or recover' }],
  decided: {},
}

/** Parses what follows `tidings history`. */
export function parseHistory(
  args: readonly string[],
  terminal: { readonly columns?: number | undefined } = {},
): ParseResult<HistoryCommand> {
  const [verb, ...rest] = args
  switch (verb) {
    case 'verify':
    case 'recover': {
      const parsed = parseFlags(verb === 'verify' ? verify : recover, rest, terminal)
      return parsed.kind === 'run' ? run({ verb, options: parsed.options }) : parsed
    }
    case 'purge': {
      const parsed = parseFlags(purge, rest, terminal)
      return parsed.kind === 'run' ? run({ verb, options: parsed.options }) : parsed
    }
    default: {
      const parsed = parseFlags(overview, args, terminal)
      if (parsed.kind === 'run') throw new Error('the overview runs nothing')
      return parsed
    }
  }
}

function run(options: HistoryCommand): ParseResult<HistoryCommand> {
  return { kind: 'run', options }
}

/** Rejects an empty text. */
function required<O>(flags: FlagTable<O>, option: keyof O, example: string): Rule<O> {
  const { name } = flags[option]
  return {
    about: [option],
    check: (options) =>
      options[option] === '' ? `--${name} is required: write --${name}=${example}` : undefined,
  }
}
