import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { markdownTable } from '../markdown-table.ts'
import { PARTS, type Part } from './parts.ts'
import { type Result, results } from './results.ts'

const root = join(import.meta.dirname, '../..')

/** docs/reference/versions.md */
export function versionsPage(): string {
  const lines = [
    '# Supported versions',
    '',
    '<!-- Made by tools/gen-docs.ts from tools/versions/parts.ts and test/versions.json; `npm run versions` records the results. -->',
    '',
    'This table shows which releases are supported, what is tested before every change, and the result of the last full run',
    'with each release (`npm run versions`): the number of tests that passed, of requests that were answered as by Kubernetes,',
    'or of mirrored events that were complete after all faults.',
    '',
    ...markdownTable(
      ['what', 'supported', 'before every change', 'release', 'last run'],
      PARTS.flatMap(rows),
    ),
    '',
    `The archive and the image contain Node ${nodeVersion()}, which runs every test. They are built for Linux with glibc and`,
    'tested on Debian 12 and 13, x64; arm64 is built and not tested.',
    '',
    'Releases of etcd before the supported ones have known consistency bugs, and the server warns of them in its log.',
    '[Which etcd](../how-to/size.md#which-etcd) helps to choose; [upgrade](../how-to/upgrade.md) says how to change it.',
  ]
  return `${lines.join('\n')}\n`
}

/** A row for each release, under the row that says what is supported. */
function rows(part: Part): readonly (readonly string[])[] {
  const found = results().filter(({ part: id }) => id === part.id)
  const releases = [...new Set(found.map(({ version }) => version))].toSorted((one, other) =>
    one.localeCompare(other, 'en', { numeric: true }),
  )
  const cells = releases.map((release) => [
    release,
    summary(
      part,
      found.filter(({ version }) => version === release),
    ),
  ])
  const [first = ['', 'not recorded'], ...others] = cells
  const support = [part.name, part.supported, part.inCi]
  return [[...support, ...first], ...others.map((row) => ['', '', '', ...row])]
}

function summary({ runs }: Part, found: readonly Result[]): string {
  const outcomes = found.map(({ suite, count, hasPassed }) => {
    const counted = runs.find((run) => run.suite === suite)?.counted ?? ''
    return hasPassed ? `${suite}: ${count.toLocaleString('en')} ${counted}` : `${suite}: **failed**`
  })
  return `${outcomes.join(', ')} (${found
    .map(({ on }) => on)
    .toSorted()
    .at(-1)})`
}

function nodeVersion(): string {
  return readFileSync(join(root, '.node-version'), 'utf8').trim()
}
