import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { patternOf } from '../../incidents/pattern.ts'
import { workloadByName } from '../../incidents/workload.ts'
import { EVENT_COLUMNS, ROLLUP_COLUMNS } from './columns.ts'
import type { ArchivedChange } from './protocol.ts'
import {
  change,
  counted,
  type Row,
  readRows,
  readSchema,
  spansIn,
  type TestEvent,
  testWriter,
  writeSegment,
  writtenRows,
} from './written-files.fixture.ts'

const writer = testWriter()
after(() => writer[Symbol.asyncDispose]())

const ms = (time: string): number => Date.parse(`2026-06-05T${time}Z`)
const at = (time: string): string => `2026-06-05T${time}Z`

const keyOf = (name: string, namespace = 'shop', cluster = 'local') => ({
  cluster,
  namespace,
  name,
})

/** What a row has, from the event as it was sent. */
function expectedRow(made: ArchivedChange, sequence: number): Row {
  const event = JSON.parse(Buffer.from(made.body).toString())
  const { metadata, regarding = {}, related = {}, deprecatedSource: source = {} } = event
  const { namespace, name } = made.key
  const text = (value: string | undefined) => value ?? ''
  const workload = workloadByName({ kind: text(regarding.kind), name: text(regarding.name) })
  return {
    again: false,
    namespace,
    ...expectedTimes(event),
    written: new Date(made.writtenAtMs),
    name,
    uid: metadata.uid ?? `${namespace}/${name}`,
    type: text(event.type),
    reason: text(event.reason),
    action: text(event.action),
    controller: event.reportingController || text(source.component),
    reporting_controller: text(event.reportingController),
    reporting_instance: text(event.reportingInstance),
    source_component: text(source.component),
    source_host: text(source.host),
    note: text(event.note),
    workload_kind: workload.kind,
    workload_name: workload.name,
    workload_rule: workload.rule,
    node: text(source.host),
    pattern: patternOf(text(event.note)),
    ...expectedReference('regarding', regarding),
    ...expectedReference('related', related),
    labels: metadata.labels ?? {},
    resource_version: BigInt(made.version),
    sequence: BigInt(sequence),
    trailer: new Uint8Array(made.trailer),
    json: JSON.stringify({
      ...event,
      metadata: { resourceVersion: String(made.version), ...metadata },
    }),
  }
}

function expectedTimes({
  metadata: { creationTimestamp: created = 0 },
  eventTime = created,
  deprecatedFirstTimestamp: firstTime = eventTime,
  deprecatedLastTimestamp: lastTime = eventTime,
  deprecatedCount = 1,
  series = { count: deprecatedCount, lastObservedTime: lastTime },
}: ReturnType<typeof JSON.parse>): Row {
  const seen = new Date(series.lastObservedTime)
  const begun = new Date(firstTime)
  const count = BigInt(series.count)
  return {
    last_seen: seen,
    first_seen: begun,
    count,
    occurrences: [{ first: count > 1 ? begun : seen, last: seen, count, is_open: false }],
  }
}

function expectedReference(prefix: string, object: Readonly<Record<string, string>>): Row {
  return {
    [`${prefix}_kind`]: object['kind'] ?? '',
    [`${prefix}_namespace`]: object['namespace'] ?? '',
    [`${prefix}_name`]: object['name'] ?? '',
    [`${prefix}_uid`]: object['uid'] ?? '',
    [`${prefix}_api_version`]: object['apiVersion'] ?? '',
    [`${prefix}_resource_version`]: object['resourceVersion'] ?? '',
    [`${prefix}_field_path`]: object['fieldPath'] ?? '',
  }
}

const OBJECT = {
  kind: 'Pod',
  namespace: 'shop',
  name: 'web-5d4f8c7b9d-x2x7z',
  uid: '0b9d3a51-6c1e-4b0e-9f0a-5d1c8f2e7a40',
  apiVersion: 'v1',
  resourceVersion: '123456789012',
  fieldPath: 'spec.containers{web}',
}

/** Events that a careless or hostile client may have sent. */
const ODD: Readonly<Record<string, TestEvent>> = {
  'no fields at all': {},
  'only empty texts': { reason: '', type: '', note: '', regarding: { kind: '', name: '' } },
  'every field': {
    metadata: {
      uid: '6f0b4e0e-0000-4000-8000-000000000001',
      creationTimestamp: at('10:00:00'),
      labels: { app: 'web', 'example.com/team': 'payments', empty: '' },
      annotations: { x: 'y' },
    },
    type: 'Warning',
    reason: 'BackOff',
    action: 'Restarting',
    note: 'Back-off restarting failed container web in pod web-5d4f8c7b9d-x2x7z_shop',
    eventTime: '2026-06-05T10:00:00.123456Z',
    series: { count: 7, lastObservedTime: '2026-06-05T10:30:00.654321Z' },
    reportingController: 'kubelet',
    reportingInstance: 'node-17.eu-central-1.compute.internal',
    regarding: OBJECT,
    related: { ...OBJECT, kind: 'Node', name: 'node-17', namespace: '' },
    deprecatedSource: { component: 'kubelet', host: 'node-17' },
  },
  'an emoji, and characters of three and four bytes': {
    note: '🦆 quacked “twice” — 鴨が二度鳴いた',
    reason: '🦆🦆🦆',
    regarding: { kind: 'Ente', name: 'Änne-🦆' },
  },
  'a note with NUL and other control characters': {
    note: 'before\0after\u001f\u001e\u0001\n\r\t\u007f',
    reason: '\0',
    type: 'a\0',
    action: 'twelve\0bytes',
  },
  'quotes, backslashes and SQL': {
    note: `'; DROP TABLE segment_0; -- " \\ \\' $1 ? %`,
    regarding: { kind: `O'Reilly"s`, name: `it's "quoted" \\ and /slashed/` },
  },
  'texts of 11 to 14 characters': {
    type: 'elevenchars',
    reason: 'twelve chars',
    action: 'thirteenchars',
    reportingController: 'fourteen chars',
    reportingInstance: 'zwölf Zeiche',
  },
  'a note of 100 KB': { note: 'long '.repeat(20_000) },
  'a name of 1,000 characters': { regarding: { kind: 'K'.repeat(1_000), name: 'n'.repeat(1_000) } },
  'a count of 2^31 - 1': { deprecatedCount: 2 ** 31 - 1, eventTime: at('10:00:00') },
  'a count of 2^53 - 1': { deprecatedCount: Number.MAX_SAFE_INTEGER, eventTime: at('10:00:00') },
  'the year 9999': { eventTime: '9999-12-31T23:59:59.999Z' },
  'the year 1': { eventTime: '0001-01-01T00:00:00Z' },
  'the first millisecond of 1970': { eventTime: '1970-01-01T00:00:00.001Z' },
  'a hundred labels': {
    metadata: {
      labels: Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`l${n}`, `v${n}`])),
    },
  },
}

const byName = (one: Row, other: Row): number =>
  String(one['name']) < String(other['name']) ? -1 : 1

describe('append and flush', () => {
  test('every column of odd events is as it was sent', async () => {
    const changes = Object.entries(ODD).map(([what, event], index) =>
      change({ event, key: keyOf(what, `namespace-${index % 3}`), version: 5_000 + index }),
    )
    const files = await writeSegment(writer, changes, 42)
    assert.deepEqual(
      files.map(({ date }) => date),
      ['2026-06-05'],
    )
    const rows = (await readRows(files[0]?.path ?? '')).toSorted(byName)
    const expected = changes.map((made) => expectedRow(made, 42)).toSorted(byName)
    for (const [index, row] of rows.entries()) assert.deepEqual(row, expected[index])
    assert.equal(rows.length, expected.length)
  })

  test('the columns and their types are those that are documented', async () => {
    const [file] = await writeSegment(writer, [change({ event: ODD['every field'] })])
    assert.ok(file !== undefined)
    const names = (columns: readonly { readonly name: string }[]) => columns.map(({ name }) => name)
    assert.deepEqual(names(await readSchema(file.path)), names(EVENT_COLUMNS))
    assert.deepEqual(names(await readSchema(file.rollupPath)), names(ROLLUP_COLUMNS))
    const types = new Map((await readSchema(file.path)).map(({ name, type }) => [name, type]))
    assert.equal(types.get('last_seen'), 'TIMESTAMP_MILLIS')
    assert.equal(types.get('note'), 'UTF8')
    assert.equal(types.get('pattern'), 'UINT_32')
    assert.equal(types.get('labels'), 'MAP')
  })

  test('the rows are sorted', async () => {
    const first = change({ event: counted(1, at('10:00:00'), at('10:00:00')) })
    const changes = ['b', 'a', 'c'].flatMap((namespace) =>
      ['Pod', 'Job'].flatMap((kind) =>
        ['y', 'x'].flatMap((name) =>
          ['10:00:02', '10:00:01'].map((time, index) =>
            change({
              key: keyOf(`${kind}.${name}.${time}`, namespace),
              event: {
                ...counted(2, at(time), at(time)),
                metadata: { uid: `${namespace}${kind}${name}${time}` },
                regarding: { kind, name },
              },
              ...(index === 0 && { previous: first }),
            }),
          ),
        ),
      ),
    )
    const rows = await writtenRows(writer, changes)
    const keys = rows.map((row) =>
      [
        row['again'],
        row['namespace'],
        row['regarding_kind'],
        row['regarding_name'],
        (row['last_seen'] as Date).toISOString(),
      ].join(' '),
    )
    assert.equal(keys.length, 24)
    assert.deepEqual(keys, keys.toSorted())
  })

  test('a damaged body is rejected, and the others are written', async () => {
    await writer.jobs.reset()
    const damaged = { ...change({ key: keyOf('bad'), version: 77 }), body: Buffer.from('{"meta') }
    const { rejected } = await writer.jobs.append([
      change({ key: keyOf('one') }),
      damaged,
      change({ key: keyOf('two') }),
    ])
    assert.deepEqual(rejected, [
      { key: keyOf('bad'), version: 77, reason: 'it is not JSON that starts with metadata' },
    ])
    const [file] = await writer.jobs.flush(1)
    assert.equal(file?.file.rows, 2)
  })

  test('an empty segment has no files', async () => {
    await writer.jobs.reset()
    assert.deepEqual(await writer.jobs.flush(1), [])
    assert.deepEqual(await writer.jobs.flush(2), [])
  })

  test('a file has the rows since the last flush or reset', async () => {
    await writer.jobs.reset()
    await writer.jobs.append([change({ key: keyOf('discarded') })])
    await writer.jobs.reset()
    await writer.jobs.append([change({ key: keyOf('first') })])
    const [first] = await writer.jobs.flush(1)
    await writer.jobs.append([change({ key: keyOf('second') })])
    const [second] = await writer.jobs.flush(2)
    const names = async (path = '') => (await readRows(path)).map((row) => row['name'])
    assert.deepEqual(await names(first?.path), ['first'])
    assert.deepEqual(await names(second?.path), ['second'])
  })

  test('there is one file for each cluster and day, and its entry says what is in it', async () => {
    const made = (cluster: string, time: string) =>
      change({
        key: keyOf(`${cluster} ${time}`, `ns-${cluster}`, cluster),
        event: {
          deprecatedLastTimestamp: time,
          regarding: { kind: 'Pod', name: `pod-${cluster}` },
        },
      })
    const files = await writeSegment(
      writer,
      [
        made('east', '2026-06-05T01:00:00Z'),
        made('west', '2026-06-05T02:00:00Z'),
        made('east', '2026-06-05T03:00:00.5Z'),
        made('east', '2026-06-04T04:00:00Z'),
      ],
      1_234,
    )
    assert.deepEqual(
      files.map(({ cluster, date, file }) => [cluster, date, file.rows]),
      [
        ['east', '2026-06-05', 2],
        ['west', '2026-06-05', 1],
        ['east', '2026-06-04', 1],
      ],
    )
    const [east] = files
    assert.ok(east !== undefined)
    const { name, bytes, sha256, rollup, ...facts } = east.file
    assert.match(name, /^cluster=east\/date=2026-06-05\/0000001234-[0-9a-f]{12}\.parquet$/)
    assert.equal(rollup.name, `rollups/${name}`)
    for (const [path, entry] of [
      [east.path, { bytes, sha256 }],
      [east.rollupPath, rollup],
    ] as const) {
      const content = readFileSync(path)
      assert.equal(entry.bytes, content.length)
      assert.equal(entry.sha256, createHash('sha256').update(content).digest('hex'))
    }
    const seen = [Date.parse('2026-06-05T01:00:00Z'), Date.parse('2026-06-05T03:00:00.5Z')]
    assert.deepEqual(facts, {
      rows: 2,
      sequences: [1_234, 1_234],
      seen,
      occurred: seen,
      namespaces: ['ns-east', 'ns-east'],
      kinds: ['Pod', 'Pod'],
      objects: ['pod-east', 'pod-east'],
    })
    assert.equal(new Set(files.map((file) => file.path)).size, 3)
  })

  test('long bounds are cut, downwards and upwards', async () => {
    const long = `${'x'.repeat(127)}🦆${'x'.repeat(500)}`
    const [file] = await writeSegment(writer, [change({ event: { regarding: { name: long } } })])
    const start = 'x'.repeat(127)
    assert.deepEqual(file?.file.objects, [start, `${start}\u{10ffff}`])
    const [lower = '', upper = ''] = file?.file.objects ?? []
    assert.ok(Buffer.from(lower).compare(Buffer.from(long)) <= 0)
    assert.ok(Buffer.from(upper).compare(Buffer.from(long)) >= 0)
  })
})

describe('several states of an event in a segment', () => {
  const one = change({ event: counted(1, at('10:00:00'), at('10:00:00')), version: 1_000 })
  const two = change({
    event: counted(2, at('10:00:00'), at('10:05:00')),
    version: 2_000,
    previous: one,
  })
  const five = change({
    event: { ...counted(5, at('10:00:00'), at('10:10:00')), note: 'the last one' },
    version: 3_000,
    previous: two,
  })
  const allSpans = [
    [ms('10:00:00'), ms('10:00:00'), 1, false],
    [ms('10:05:00'), ms('10:05:00'), 1, false],
    [ms('10:05:00'), ms('10:10:00'), 3, true],
  ]

  test('are one row: the last state, with the occurrences of all', async () => {
    const rows = await writtenRows(writer, [one, two, five])
    assert.deepEqual(
      rows.map((row) => [row['again'], row['count'], row['note'], row['resource_version']]),
      [[false, 5n, 'the last one', 3_000n]],
    )
    assert.deepEqual(spansIn(rows[0]), allSpans)
  })

  test('are one row when other events are between them, in other calls', async () => {
    await writer.jobs.reset()
    for (const [round, state] of [one, two, five].entries()) {
      const others = Array.from({ length: 7_000 }, (_, index) => {
        const key = keyOf(`other-${round}-${index}`)
        return change({
          key,
          event: { ...counted(1, at('09:00:00'), at('09:00:00')), metadata: {} },
        })
      })
      await writer.jobs.append([...others.slice(0, 1_000), state, ...others.slice(1_000)])
    }
    const [file] = await writer.jobs.flush(9)
    const rows = await readRows(file?.path ?? '')
    assert.equal(rows.length, 21_001)
    const found = rows.filter((row) => row['uid'] === 'u-1')
    assert.equal(found.length, 1)
    assert.equal(found[0]?.['note'], 'the last one')
    assert.deepEqual(spansIn(found[0]), allSpans)
    assert.deepEqual(await writer.jobs.check(file === undefined ? [] : [file]), [])
  })

  test('of which the first is not in the segment follow an earlier row', async () => {
    const rows = await writtenRows(writer, [two, five])
    assert.deepEqual(
      rows.map((row) => row['again']),
      [true],
    )
    assert.deepEqual(spansIn(rows[0]), allSpans.slice(1))
  })

  test('of two days are two rows', async () => {
    const monday = change({
      event: counted(1, '2026-06-04T23:59:00Z', '2026-06-04T23:59:00Z'),
      version: 1_000,
    })
    const tuesday = change({
      event: counted(2, '2026-06-04T23:59:00Z', '2026-06-05T00:01:00Z'),
      version: 2_000,
      previous: monday,
    })
    const files = await writeSegment(writer, [monday, tuesday])
    const rows = await Promise.all(files.map(({ path }) => readRows(path)))
    assert.deepEqual(
      files.map(({ date }, index) => [
        date,
        ...(rows[index] ?? []).map((row) => [row['again'], row['count']]),
      ]),
      [
        ['2026-06-04', [false, 1n]],
        ['2026-06-05', [true, 2n]],
      ],
    )
    assert.deepEqual(spansIn(rows[1]?.[0]), [
      [Date.parse('2026-06-05T00:01:00Z'), Date.parse('2026-06-05T00:01:00Z'), 1, false],
    ])
  })

  test('of one key without a uid are one row', async () => {
    const event = { ...counted(1, at('10:00:00'), at('10:00:00')), metadata: {} }
    const first = change({ event })
    const second = change({ event: { ...event, deprecatedCount: 2 }, previous: first })
    const rows = await writtenRows(writer, [first, second, change({ event, key: keyOf('other') })])
    assert.deepEqual(rows.map((row) => [row['uid'], row['count']]).toSorted(), [
      ['shop/other', 1n],
      ['shop/web-0.1', 2n],
    ])
  })

  test('that are very many have their occurrences merged by the minute', async () => {
    const changes: ArchivedChange[] = []
    for (let second = 0; second < 3_600; second += 2) {
      const time = new Date(ms('10:00:00') + second * 1_000).toISOString()
      const event = counted(second / 2 + 1, at('10:00:00'), time)
      changes.push(change({ event, previous: changes.at(-1) }))
    }
    const [row] = await writtenRows(writer, changes)
    const spans = spansIn(row)
    assert.ok(spans.length <= 1_440)
    assert.equal(
      spans.reduce((sum, [, , count]) => sum + Number(count), 0),
      1_800,
    )
    const isOneMinute = ([first, last]: readonly (number | boolean)[]) =>
      Math.floor(Number(first) / 60_000) === Math.floor(Number(last) / 60_000)
    assert.ok(spans.every(isOneMinute))
  })
})

describe('a segment that is lost', () => {
  test('a process without a segment refuses changes until it is reset', async () => {
    await using fresh = testWriter()
    await assert.rejects(fresh.jobs.append([change()]), { kind: 'lost' })
    await assert.rejects(fresh.jobs.flush(1), { kind: 'lost' })
    await fresh.jobs.reset()
    await fresh.jobs.append([change()])
    process.kill(fresh.engine.pid ?? 0, 'SIGKILL')
    while (fresh.engine.pid !== undefined) await new Promise((resolve) => setTimeout(resolve, 5))
    await assert.rejects(fresh.jobs.append([change({ key: keyOf('later') })]), { kind: 'lost' })
    await assert.rejects(fresh.jobs.flush(1), { kind: 'lost' })
    await fresh.jobs.reset()
    assert.deepEqual(await fresh.jobs.flush(1), [])
  })

  test('kill -9 while files are written leaves nothing that looks like a file', async () => {
    await using fresh = testWriter()
    const folder = join(fresh.folder, 'written')
    await fresh.jobs.reset()
    const changes = Array.from({ length: 20_000 }, (_, index) =>
      change({ key: keyOf(`e${index}`) }),
    )
    await fresh.jobs.append(changes)
    const flushed = assert.rejects(fresh.jobs.flush(1), { kind: 'died' })
    while (!readdirSync(folder).some((name) => name.endsWith('.partial'))) {
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    process.kill(fresh.engine.pid ?? 0, 'SIGKILL')
    await flushed
    await fresh.jobs.reset()
    assert.deepEqual(readdirSync(folder), [])
  })

  test('a flush that fails leaves no files, and the segment is lost', async () => {
    await using fresh = testWriter()
    await fresh.jobs.reset()
    const changes = Array.from({ length: 20_000 }, (_, index) =>
      change({ key: keyOf(`e${index}`) }),
    )
    await fresh.jobs.append(changes)
    await assert.rejects(fresh.jobs.flush(1, { timeoutMs: 20 }), { kind: 'timeout' })
    await assert.rejects(fresh.jobs.flush(1), { kind: 'lost' })
    assert.deepEqual(readdirSync(join(fresh.folder, 'written')), [])
  })
})

describe('check', () => {
  test('finds nothing wrong with files as they were written', async () => {
    const files = await writeSegment(writer, [
      change({ event: ODD['every field'] }),
      change({ event: ODD['the year 9999'], key: keyOf('late') }),
    ])
    assert.deepEqual(await writer.jobs.check(files), [])
  })

  test('finds bytes that changed, files that are cut, missing or other ones', async () => {
    const changes = [change({ event: ODD['every field'] }), change({ key: keyOf('two') })]
    const [file] = await writeSegment(writer, changes)
    const [other] = await writeSegment(writer, [change({ key: keyOf('other', 'elsewhere') })])
    assert.ok(file !== undefined && other !== undefined)
    const content = readFileSync(file.path)
    const faultsOf = async (bytes: Buffer, entry = file) => {
      writeFileSync(file.path, bytes)
      const [faulty] = await writer.jobs.check([{ ...entry, path: file.path }])
      return faulty?.faults.join('; ') ?? 'none'
    }
    const flipped = Buffer.from(content)
    flipped[100] = (flipped[100] ?? 0) ^ 0xff
    assert.match(await faultsOf(flipped), /another checksum/)
    assert.match(await faultsOf(content.subarray(0, -100)), /has \d+ bytes, not \d+/)
    assert.match(await faultsOf(Buffer.from('no Parquet')), /Parquet|magic|too small/i)
    assert.equal(await faultsOf(content), 'none')
    assert.match(
      await faultsOf(content, { ...file, file: { ...file.file, rows: 3 } }),
      /rows is 2, not 3/,
    )
    assert.match(await faultsOf(content, { ...file, rollupPath: other.rollupPath }), /rollup/)
    const [missing] = await writer.jobs.check([
      { ...file, path: join(writer.folder, 'written', 'x') },
    ])
    assert.match(missing?.faults.join() ?? '', /ENOENT/)
    assert.ok(existsSync(other.path))
  })
})
