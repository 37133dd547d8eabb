/**
 * What is generated for charts/tidings: copies of the alerts and the dashboard, which a chart cannot
 * read from outside its folder, the names of all flags, the table of values in its README, and the
 * version of package.json wherever the chart, its docs and the kustomize base name it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMap, isPair, isScalar, type Pair, parseDocument } from 'yaml'
import { serverCommand } from '../src/options/commands.ts'
import { flagsByTopic } from '../src/options/help.ts'
import { markdownTable } from './markdown-table.ts'
import { dashboard } from './monitoring/dashboard.ts'

const root = join(import.meta.dirname, '..')
const CHART = 'charts/tidings'
const TABLE = /(<!-- values:begin -->\n)[\s\S]*(<!-- values:end -->)/

/** Files with the version of the release, which else are written by hand or by another program. */
const VERSIONED = [
  `${CHART}/Chart.yaml`,
  'deploy/base/tidings.yaml',
  'deploy/overlays/example/kustomization.yaml',
  'docs/how-to/deploy-on-kubernetes.md',
  'docs/how-to/install.md',
]
/** Matches `appVersion: 1.2.3`, `newTag: 1.2.3`, `tidings:1.2.3` and `tidings-1.2.3-linux-x64`. */
const VERSION =
  /((?:\b(?:v|appV)ersion: "?|newTag: |tidings[:-]))\d+\.\d+\.\d+(?:-(?:alpha|beta|rc)[\w.]*)?/g

/** A value of the chart that an operator can set. */
export interface ChartValue {
  /** The path in the syntax of `--set`: `etcd.tls.existingSecret`. */
  readonly path: string
  /** The default as JSON; undefined for a value that contains others. */
  readonly default: string | undefined
  /** The comment above it; empty when there is none. */
  readonly comment: string
}

/** Paths and contents, for tools/gen-docs.ts. */
export const chartDocs: readonly { readonly path: string; render(): string }[] = [
  { path: `${CHART}/files/flags.txt`, render: flagNames },
  { path: `${CHART}/files/alerts.yaml`, render: () => read('monitoring/alerts.yaml') },
  { path: `${CHART}/files/dashboard.json`, render: dashboard },
  { path: `${CHART}/README.md`, render: readme },
  ...VERSIONED.map((path) => ({ path, render: () => withVersion(read(path)) })),
]

/** All values of values.yaml, in its order. */
export function chartValues(text: string = read(`${CHART}/values.yaml`)): readonly ChartValue[] {
  const { contents } = parseDocument(text)
  return isMap(contents) ? contents.items.flatMap((pair) => valuesOf(pair, '')) : []
}

/** A map whose own values have comments is described value by value; any other as a whole. */
function valuesOf(pair: Pair, prefix: string): readonly ChartValue[] {
  const key = isScalar(pair.key) ? pair.key : undefined
  const path = `${prefix}${String(key?.value)}`
  const comment = commentOf(key?.commentBefore ?? '')
  const { value } = pair
  if (!isMap(value) || !isDescribed(value)) {
    const json = JSON.stringify((value as { toJSON(): unknown } | null)?.toJSON())
    return [{ path, default: json, comment }]
  }
  // The parser puts the comment of the first key on the map.
  const first = commentOf(value.commentBefore ?? '')
  const own = value.items.flatMap((item) => valuesOf(item, `${path}.`))
  return [
    { path, default: undefined, comment },
    ...own.map((each, at) =>
      at === 0 && each.comment === '' ? { ...each, comment: first } : each,
    ),
  ]
}

function isDescribed(map: { readonly commentBefore?: string | null; items: readonly unknown[] }) {
  const hasComment = (item: unknown) =>
    isPair(item) && isScalar(item.key) && (item.key.commentBefore ?? '') !== ''
  return (map.commentBefore ?? '') !== '' || map.items.some(hasComment)
}

/** The last paragraph: what is before an empty line is about the file. */
function commentOf(text: string): string {
  const [last = ''] = text.split(/\n\s*\n/).slice(-1)
  return last.replaceAll('\n', ' ').replaceAll(/\s+/g, ' ').trim()
}

function flagNames(): string {
  const flags = [...flagsByTopic(serverCommand).values()].flat()
  return `${flags
    .map(({ name }) => name)
    .sort()
    .join('\n')}\n`
}

function readme(): string {
  const rows = chartValues().map(({ path, default: value, comment }) => [
    `\`${path}\``,
    value === undefined ? '' : `\`${value}\``,
    comment,
  ])
  const table = markdownTable(['value', 'default', 'meaning'], rows)
  return read(`${CHART}/README.md`).replace(
    TABLE,
    `$1\n${table.join('\n').replaceAll('$', '$$$$')}\n\n$2`,
  )
}

/** The text with the version of package.json in each place that names one. */
export function withVersion(text: string, version: string = packageVersion()): string {
  return text.replaceAll(VERSION, (_, before: string) => before + version)
}

function packageVersion(): string {
  return JSON.parse(read('package.json')).version
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}
