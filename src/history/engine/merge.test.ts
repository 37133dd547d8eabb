import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import type { ArchivedChange, Removal, WrittenFile } from './protocol.ts'
import {
  change,
  counted,
  type Row,
  readRows,
  spansIn,
  testWriter,
  writeSegment,
} from './written-files.fixture.ts'

const writer = testWriter()
after(() => writer[Symbol.asyncDispose]())

const day = { cluster: 'local', date: '2026-06-05' }
const ms = (time: string): number => Date.parse(`2026-06-05T${time}Z`)
const at = (time: string): string => `2026-06-05T${time}Z`
const ALWAYS = Number.POSITIVE_INFINITY
const of = (namespace: string, seenBeforeMs = ALWAYS): Removal => ({
  requires: { namespaces: [{ text: namespace, isPrefix: false }] },
  seenBeforeMs,
})
const all = (seenBeforeMs: number): Removal => ({ requires: {}, seenBeforeMs })
const keyOf = (name: string, namespace = 'shop') => ({ cluster: 'local', namespace, name })

/** One file for each list of changes, with ascending sequences. */
async function segments(...lists: readonly (readonly ArchivedChange[])[]): Promise<WrittenFile[]> {
  const files: WrittenFile[] = []
  for (const [index, changes] of lists.entries()) {
    files.push(...(await writeSegment(writer, changes, index + 1)))
  }
  return files
}

async function merged(
  inputs: readonly WrittenFile[],
  removals: readonly Removal[] = [],
): Promise<{ readonly rows: readonly Row[]; readonly removedRows: number; written?: WrittenFile }> {
  const { written, removedRows } = await writer.jobs.merge(day, inputs, removals)
  if (written === undefined) return { rows: [], removedRows }
  assert.deepEqual(await writer.jobs.check([written]), [])
  return { rows: await readRows(written.path), removedRows, written }
}

/** Different events, each seen once. */
function single(name: string, time: string, namespace?: string): ArchivedChange {
  const event = { ...counted(1, at(time), at(time)), metadata: { uid: `uid-${name}` } }
  return change({ key: keyOf(name, namespace), event })
}

/** An event whose count rises by one with every state. */
function states(times: readonly string[]): readonly ArchivedChange[] {
  const made: ArchivedChange[] = []
  for (const [index, time] of times.entries()) {
    const event = {
      ...counted(index + 1, at(times[0] ?? ''), at(time)),
      note: `state ${index + 1}`,
    }
    made.push(change({ event, version: 1_000 * (index + 1), previous: made.at(-1) }))
  }
  return made
}

describe('merge', () => {
  test('keeps every column of events with one row', async () => {
    const one = [single('a', '10:00:00'), single('b', '11:00:00', 'billing')]
    const two = [single('c', '09:00:00'), single('d', '12:00:00', 'aaa')]
    const inputs = await segments(one, two)
    const before = (await Promise.all(inputs.map(({ path }) => readRows(path)))).flat()
    const { rows, removedRows, written } = await merged(inputs)
    const byName = (left: Row, right: Row) =>
      String(left['name']) < String(right['name']) ? -1 : 1
    assert.deepEqual(rows.toSorted(byName), before.toSorted(byName))
    assert.equal(removedRows, 0)
    assert.deepEqual(
      rows.map((row) => row['namespace']),
      ['aaa', 'billing', 'shop', 'shop'],
    )
    assert.match(written?.file.name ?? '', /^cluster=local\/date=2026-06-05\/0000000002-/)
    assert.deepEqual(written?.file.sequences, [1, 2])
    assert.deepEqual(written?.file.namespaces, ['aaa', 'shop'])
  })

  test('keeps the newest row of an event, with the occurrences of all', async () => {
    const [one, two, three] = states(['10:00:00', '10:05:00', '10:10:00'])
    assert.ok(one && two && three)
    const inputs = await segments([one, single('a', '10:00:00')], [two], [three])
    // In whichever order they are given.
    for (const order of [inputs, inputs.toReversed()]) {
      const { rows } = await merged(order)
      const [row] = rows.filter(({ uid }) => uid === 'u-1')
      assert.equal(rows.length, 2)
      assert.deepEqual(
        [row?.['note'], row?.['count'], row?.['sequence'], row?.['again']],
        ['state 3', 3n, 3n, false],
      )
      assert.deepEqual(
        spansIn(row),
        ['10:00:00', '10:05:00', '10:10:00'].map((time) => [ms(time), ms(time), 1, false]),
      )
    }
  })

  test('of rows that follow earlier ones is such a row', async () => {
    const [, two, three] = states(['10:00:00', '10:05:00', '10:10:00'])
    assert.ok(two && three)
    const { rows } = await merged(await segments([two], [three]))
    assert.deepEqual(
      rows.map((row) => [row['again'], spansIn(row).length]),
      [[true, 2]],
    )
  })

  test('takes the higher version of two rows with the same sequence', async () => {
    const [one, two] = states(['10:00:00', '10:05:00'])
    assert.ok(one && two)
    const files = [
      ...(await writeSegment(writer, [two], 7)),
      ...(await writeSegment(writer, [one], 7)),
    ]
    const { rows } = await merged(files)
    assert.deepEqual(
      rows.map((row) => row['note']),
      ['state 2'],
    )
  })

  test('of a file that is given twice has each row once', async () => {
    const [file] = await segments([single('a', '10:00:00'), single('b', '10:00:00')])
    assert.ok(file)
    const { rows } = await merged([file, file])
    assert.deepEqual(
      rows.map((row) => row['name']),
      ['a', 'b'],
    )
  })

  test('of merged files is the same as of all files at once', async () => {
    const [one, two, three] = states(['10:00:00', '10:05:00', '10:10:00'])
    assert.ok(one && two && three)
    const inputs = await segments([one], [two], [three, single('a', '10:00:00')])
    const { written: half } = await merged(inputs.slice(0, 2))
    assert.ok(half)
    const { rows } = await merged([half, ...inputs.slice(2)])
    assert.deepEqual(rows, (await merged(inputs)).rows)
  })

  test('has at most a span for each minute of the day', async () => {
    const lists: ArchivedChange[][] = []
    let previous: ArchivedChange | undefined
    for (let segment = 0; segment < 4; segment++) {
      const list: ArchivedChange[] = []
      for (let second = 0; second < 600; second++) {
        const time = new Date(ms('10:00:00') + segment * 900_000 + second * 1_000).toISOString()
        const event = counted(segment * 600 + second + 1, at('10:00:00'), time)
        previous = change({ event, previous })
        list.push(previous)
      }
      lists.push(list)
    }
    const { rows } = await merged(await segments(...lists))
    const spans = spansIn(rows[0])
    assert.equal(spans.length, 40)
    assert.ok(
      spans.every(([first, last, count]) => {
        return Number(last) - Number(first) === 59_000 && count === 60
      }),
    )
    assert.deepEqual(
      spans.map(([first]) => first),
      spans.map(([first]) => first).toSorted(),
    )
  })
})

describe('removals', () => {
  const inputs = () =>
    segments(
      [single('a', '10:00:00', 'shop'), single('b', '10:00:00', "it's")],
      [single('c', '12:00:00', 'shop'), single('d', '12:00:00', "it's")],
    )
  const names = (rows: readonly Row[]) => rows.map((row) => row['name']).toSorted()

  test('by namespace', async () => {
    const { rows, removedRows } = await merged(await inputs(), [of("it's")])
    assert.deepEqual(names(rows), ['a', 'c'])
    assert.equal(removedRows, 2)
  })

  test('by time, up to a millisecond', async () => {
    const files = await inputs()
    const before = await merged(files, [all(ms('12:00:00'))])
    assert.deepEqual(names(before.rows), ['c', 'd'])
    const after = await merged(files, [all(ms('12:00:00') + 1)])
    assert.deepEqual(after, { rows: [], removedRows: 4 })
  })

  test('by the first of several whose requirements a row has', async () => {
    const { rows, removedRows } = await merged(await inputs(), [
      of('shop', ms('11:00:00')),
      of("it's", ms('13:00:00')),
      all(ALWAYS),
    ])
    assert.deepEqual(names(rows), ['c'])
    assert.equal(removedRows, 3)
  })

  test('of the last state leave the one before', async () => {
    const [one, two] = states(['10:00:00', '10:05:00'])
    assert.ok(one && two)
    const files = await segments([one], [{ ...two, key: keyOf('web-0.1', 'moved') }])
    const { rows, removedRows } = await merged(files, [of('moved')])
    assert.deepEqual(
      rows.map((row) => row['note']),
      ['state 1'],
    )
    assert.equal(removedRows, 1)
  })

  test('of all rows leave no file', async () => {
    const files = await inputs()
    const folder = join(writer.folder, 'written')
    const before = readdirSync(folder)
    const { written, removedRows } = await writer.jobs.merge(day, files, [all(ALWAYS)])
    assert.deepEqual([written, removedRows], [undefined, 4])
    assert.deepEqual(readdirSync(folder), before)
  })
})

test('a merge that fails leaves no files, and the segment is not lost', async () => {
  const files = await segments([single('a', '10:00:00')])
  await writer.jobs.append([single('b', '10:00:00')])
  const folder = join(writer.folder, 'written')
  const before = readdirSync(folder)
  const missing = files.map((file) => ({ ...file, path: join(folder, 'missing.parquet') }))
  await assert.rejects(writer.jobs.merge(day, missing, []), { kind: 'failed' })
  assert.deepEqual(readdirSync(folder), before)
  const [flushed] = await writer.jobs.flush(5)
  assert.equal(flushed?.file.rows, 1)
})
