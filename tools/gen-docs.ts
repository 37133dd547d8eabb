/**
 * Writes the documents that are generated from source: `node tools/gen-docs.ts`. With `--check` it
 * writes nothing and fails when one of them is stale.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { devCommand, serverCommand } from '../src/options/commands.ts'
import type { Command } from '../src/options/flag.ts'
import { flagsByTopic, type ShownFlag } from '../src/options/help.ts'
import { historyCommands } from '../src/options/history-commands.ts'
import { chartDocs } from './chart-docs.ts'
import { decisionsPage } from './decisions-page.ts'
import { markdownTable } from './markdown-table.ts'
import { dashboard } from './monitoring/dashboard.ts'
import { metricsPage } from './monitoring/metrics-page.ts'
import { versionsPage } from './versions/page.ts'

/** A document generated from source, by its path in the repository. */
export interface GeneratedDoc {
  readonly path: string
  render(): string
}

export const generatedDocs: readonly GeneratedDoc[] = [
  { path: 'docs/reference/flags.md', render: flagsPage },
  { path: 'docs/reference/metrics.md', render: metricsPage },
  { path: 'docs/reference/versions.md', render: versionsPage },
  { path: 'docs/explanation/decisions.md', render: decisionsPage },
  { path: 'monitoring/dashboard.json', render: dashboard },
  ...chartDocs,
]

/** Whether the document on disk is up to date. */
export function isStale(doc: GeneratedDoc): boolean {
  try {
    return readFileSync(onDisk(doc), 'utf8') !== doc.render()
  } catch {
    // A file that cannot be read must be written, whatever the reason.
    return true
  }
}

function flagsPage(): string {
  const lines = [
    '# Flags',
    '',
    '<!-- Made by tools/gen-docs.ts from src/options/options.ts; edit those, then run it. -->',
    '',
    'Flags are written `--name=value` or `--name value`; flags without a value are turned on with',
    '`--name` and off with `--name=false`. Underscores count as hyphens. Lists take commas or the flag',
    'repeated. Durations are written as in Go: `300ms`, `1m30s`, `2h`. All mistakes are reported at once.',
    '',
    `## \`${serverCommand.name}\``,
    '',
    serverCommand.summary,
  ]
  for (const [topic, flags] of flagsByTopic(serverCommand)) {
    lines.push('', `### ${topic}`, '', ...table(flags))
  }
  lines.push('', `## \`${devCommand.name}\``, '', devCommand.summary)
  lines.push(...leftOut(devCommand))
  const known = new Map(all(serverCommand).map((flag) => [flag.name, flag.default]))
  const own = all(devCommand).filter(
    (flag) => !known.has(flag.name) || known.get(flag.name) !== flag.default,
  )
  lines.push('', ...table(own))
  lines.push(...historyLines())
  return `${lines.join('\n')}\n`
}

function historyLines(): readonly string[] {
  const [verify, purge, recover] = historyCommands
  const shared = all(verify)
  const names = new Set(shared.map(({ name }) => name))
  const lines = (command: { readonly name: string; readonly summary: string }): string[] => [
    '',
    `## \`${command.name}\``,
    '',
    command.summary,
  ]
  return [
    ...[...lines(verify), '', ...table(shared)],
    ...[...lines(recover), '', `Takes the flags of \`${verify.name}\`.`],
    ...[...lines(purge), '', `Takes the flags of \`${verify.name}\`, and these:`],
    ...['', ...table(all(purge).filter(({ name }) => !names.has(name)))],
  ]
}

function leftOut<O>(command: Command<O>): string[] {
  const keys = Object.keys(command.decided) as (keyof O)[]
  const list = keys.map((key) => `\`--${command.flags[key].name}\``).join(', ')
  return [`Takes every flag above but ${list}. These are its own, or have another default:`]
}

function all<O>(command: Command<O>): readonly ShownFlag[] {
  return [...flagsByTopic(command).values()].flat()
}

function table(flags: readonly ShownFlag[]): readonly string[] {
  return markdownTable(['flag', 'value', 'default', 'meaning'], flags.map(cells))
}

function cells(flag: ShownFlag): string[] {
  const short = flag.short === undefined ? '' : `\`-${flag.short}\`, `
  return [
    `${short}\`--${flag.name}\``,
    flag.placeholder === '' ? '' : `\`${flag.placeholder}\``,
    flag.default === undefined ? '' : `\`${flag.default}\``,
    flag.help,
  ]
}

function onDisk(doc: GeneratedDoc): string {
  return fileURLToPath(new URL(`../${doc.path}`, import.meta.url))
}

if (import.meta.main) {
  const stale = generatedDocs.filter(isStale)
  if (!process.argv.includes('--check')) {
    for (const doc of stale) writeFileSync(onDisk(doc), doc.render())
  } else if (stale.length > 0) {
    const list = stale.map((doc) => doc.path).join(', ')
    process.stderr.write(`stale: ${list}. Run: node tools/gen-docs.ts\n`)
    process.exitCode = 1
  }
}
