/** docs/reference/history-files.md: its tables are the columns, and its queries run on files of a server. */
import assert from 'node:assert/strict'
import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { DuckDBInstance } from '@duckdb/node-api'
import { type Column, EVENT_COLUMNS, ROLLUP_COLUMNS } from '../../../src/history/engine/columns.ts'
import { dayFolder, rollupFolder } from '../../../src/history/manifest.ts'
import { blocksOf } from '../../../tools/markdown.ts'
import { pageText } from '../../../tools/pages.ts'
import type { EventClient } from '../../support/event-client.ts'
import { eventually } from '../../support/eventually.ts'
import { Replicas } from '../../support/replicas.ts'
import { makeEvent, type WireEvent } from '../../support/wire-event.ts'

const page = pageText('docs/reference/history-files.md')
const queries = blocksOf(page).filter(({ language }) => language === 'sql')
/** The days of the page, and those of the events: earlier ones would be filed under today. */
const DAYS = { '2026-03-01': daysAgo(5), '2026-03-02': daysAgo(4) }
const [FIRST, SECOND] = Object.values(DAYS)
const checkout = {
  type: 'Warning',
  reason: 'BackOff',
  eventTime: `${FIRST}T12:00:00.000000Z`,
  regarding: { apiVersion: 'apps/v1', kind: 'Deployment', namespace: 'shop', name: 'checkout' },
}

test('the tables have all columns, in their order and with their types', () => {
  const [, events = '', rollups = ''] = page.split(/^## (?:Events|Rollups|Examples)$/m)
  assert.deepEqual(rowsIn(events), EVENT_COLUMNS.map(shown))
  assert.deepEqual(rowsIn(rollups), ROLLUP_COLUMNS.map(shown))
})

test('the queries find what a server has archived, each occurrence once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'tidings-history-files-'))
  try {
    await using replicas = await Replicas.start(1, [
      '--cluster-name=prod',
      `--history=file://${folder}`,
      '--history-segment-interval=1s',
    ])
    using client = await replicas.client(0)
    await archived(client, await client.create(makeEvent('shop', 'loop', checkout)))
    const killing = { ...checkout, reason: 'Killing', type: 'Normal' }
    await client.create(makeEvent('shop', 'once', killing))
    await client.create(makeEvent('pay', 'other', checkout))
    const series = { count: 7, lastObservedTime: `${SECOND}T00:30:00.000000Z` }
    const raised = { type: 'merge-patch', patch: { series } } as const
    await archived(client, await client.patch('shop', 'loop', raised))
    const results = await resultsOf(folder)
    const whole = results.at(-1)
    assert.deepEqual(results.slice(0, -1), [
      [],
      [
        ['BackOff', '7'],
        ['Killing', '1'],
      ],
      [
        [`${SECOND} 00:30:00`, 'Warning', 'BackOff', '7', 'one of many'],
        [`${FIRST} 12:00:00`, 'Normal', 'Killing', '1', 'one of many'],
      ],
      [
        [`${FIRST} 00:00:00`, 'shop', '6'],
        [`${FIRST} 00:00:00`, 'pay', '1'],
        [`${SECOND} 00:00:00`, 'shop', '1'],
      ],
    ])
    assert.equal(warningsIn(whole), 8)
    await duplicate(folder)
    const again = await resultsOf(folder)
    assert.deepEqual(again.slice(0, -1), results.slice(0, -1))
    assert.ok(warningsIn(again.at(-1)) > 8)
  } finally {
    await rm(folder, { recursive: true })
  }
})

type Rows = readonly (readonly unknown[])[]

/** Of all months. */
function warningsIn(rows: Rows = []): number {
  return rows.reduce((sum, [, , warnings]) => sum + Number(warnings), 0)
}

/** Resolves when this change is in history. */
async function archived(client: EventClient, { metadata }: WireEvent): Promise<void> {
  const version = Number(metadata.resourceVersion)
  await eventually('it is archived', async () => {
    const path = '/apis/tidings.dev/v1alpha1/retentionwindows'
    const { body } = await client.request({ path })
    const [window] = JSON.parse(body.toString()).items
    return Number(window?.history?.position ?? 0) >= version
  })
}

/** Leaves files that no list of a day names, as a merge does. */
async function duplicate(folder: string): Promise<void> {
  for (const date of Object.values(DAYS)) {
    for (const place of [dayFolder, rollupFolder]) {
      const day = join(folder, place({ cluster: 'prod', date }))
      const [file = ''] = await readdir(day)
      await copyFile(join(day, file), join(day, 'replaced.parquet'))
    }
  }
}

/** The rows of each query; those that only set variables have none. */
async function resultsOf(folder: string): Promise<readonly Rows[]> {
  const instance = await DuckDBInstance.create()
  const connection = await instance.connect()
  const results: Rows[] = []
  for (const { text } of queries) {
    const sql = Object.entries(DAYS)
      .reduce((each, [shown, date]) => each.replaceAll(shown, date), text)
      .replaceAll("'history/", `'${folder}/`)
    results.push((await connection.runAndReadAll(sql)).getRowsJson())
  }
  connection.closeSync()
  instance.closeSync()
  return results
}

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10)
}

function rowsIn(section: string): readonly string[] {
  return [...section.matchAll(/^\| `(\w+)` +\| (.+?) +\|/gm)].map(
    ([, name, type = '']) => `${name} ${type.replaceAll('`', '')}`,
  )
}

function shown({ name, type }: Column): string {
  return `${name} ${/^STRUCT.*\[\]$/.test(type) ? 'list of STRUCT' : type}`
}
