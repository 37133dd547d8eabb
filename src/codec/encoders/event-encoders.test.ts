import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { coreGroup, eventsGroup } from '../../api/event-groups.ts'
import { StatusError } from '../../api/status.ts'
import type { FrameEncoder } from '../../storage/frames.ts'
import { formatVersion, versionOfChange } from '../../storage/resource-version.ts'
import type { StoredEvent, WatchItem } from '../../storage/storage.ts'
import { StoredBody } from '../../storage/stored-form.ts'
import { type ShownEvent, unstoredEvent } from '../event/event-bytes.ts'
import type { Representation } from '../representation.ts'
import { EventEncoders } from './event-encoders.ts'
import type { EventView, ListMeta } from './event-shapes.ts'
import { viewOf } from './event-view.ts'
import type { ResponseEncoder } from './response-encoder.ts'
import { eventColumns } from './table.ts'

const now = Date.parse('2026-01-02T04:04:05Z')
const encoders = new EventEncoders(viewOf(eventsGroup('events.k8s.io')), () => now)
const version = versionOfChange(7, 3)
const resourceVersion = formatVersion(version)

const json: Representation = {
  mediaType: 'application/json',
  as: 'object',
  metaVersion: 'v1',
  includeObject: 'Metadata',
  isPretty: false,
}
const pretty: Representation = { ...json, isPretty: true }
const yaml: Representation = { ...json, mediaType: 'application/yaml' }
const partial: Representation = { ...json, as: 'partial' }
const table: Representation = { ...json, as: 'table' }

const metadata = { name: 'a', namespace: 'ns', uid: 'u', labels: { k: 'v' } }
const fields = {
  eventTime: '2026-01-02T03:04:05.678901Z',
  reason: 'Scheduled',
  regarding: { kind: 'Pod', name: 'web-0' },
  note: '<a> "b" \\ \u2028 {}[],:\n',
  type: 'Normal',
}

function stored(event: object = { metadata, ...fields }): StoredEvent {
  const body = Buffer.from(JSON.stringify(event))
  const { versionOffset } = unstoredEvent(body)
  return new StoredBody({
    key: { cluster: 'local', namespace: 'ns', name: 'a' },
    body,
    versionOffset,
    version,
    writtenAtMs: 0,
  })
}

function list(
  encoder: ResponseEncoder,
  meta: ListMeta,
  pages: readonly (readonly ShownEvent[])[],
): string {
  let text = String(encoder.listHead(meta, 0))
  let count = 0
  for (const page of pages) {
    text += String(encoder.listEntries(page, count))
    count += page.length
  }
  return text + String(encoder.listTail(meta, count))
}

function parsed(text: Buffer | string): unknown {
  return JSON.parse(text.toString())
}

const whole = {
  kind: 'Event',
  apiVersion: 'events.k8s.io/v1',
  metadata: { resourceVersion, ...metadata },
  ...fields,
}
const partialObject = {
  kind: 'PartialObjectMetadata',
  apiVersion: 'meta.k8s.io/v1',
  metadata: { resourceVersion, ...metadata },
}
const cells = ['59m', 'Normal', 'Scheduled', 'pod/web-0', '', '', 1, fields.note.trim(), '59m', 'a']

describe('EventEncoders: an event as JSON', () => {
  it('an event is one line of JSON: kind, version and the stored members', () => {
    assert.equal(encoders.response(json).one(stored()).toString(), `${JSON.stringify(whole)}\n`)
  })

  it('an event that was not stored has no version', () => {
    const shown = unstoredEvent(Buffer.from(JSON.stringify({ metadata, ...fields })))
    const { kind, apiVersion } = whole
    assert.deepEqual(parsed(encoders.response(json).one(shown)), {
      kind,
      apiVersion,
      metadata,
      ...fields,
    })
  })

  it('indented JSON ends without a newline', () => {
    assert.equal(encoders.response(pretty).one(stored()), JSON.stringify(whole, undefined, 2))
  })

  it('an event has the field names of its group', () => {
    const view: EventView = {
      ...viewOf(coreGroup),
      body: (body) => Buffer.from(body.toString().replace('"regarding":', '"involvedObject":')),
      isAsStored: false,
      message: () => Buffer.alloc(0),
    }
    const core = new EventEncoders(view, () => now)
    const { regarding, ...rest } = whole
    const expected = { ...rest, apiVersion: 'v1', involvedObject: regarding }
    assert.deepEqual(parsed(core.response(json).one(stored())), expected)
    const { kind, apiVersion, ...item } = expected
    assert.deepEqual(parsed(list(core.response(json), {}, [[stored()]])), {
      kind: 'EventList',
      apiVersion: 'v1',
      metadata: {},
      items: [item],
    })
    const rows = core.response({ ...table, includeObject: 'Object' }).one(stored())
    assert.deepEqual((parsed(rows) as { rows: unknown[] }).rows, [{ cells, object: expected }])
  })
})

describe('EventEncoders: a list as JSON', () => {
  const meta = { remainingItemCount: 2, continue: 'token', resourceVersion: '7999' }
  const { kind, apiVersion, ...item } = whole
  const expected = {
    kind: 'EventList',
    apiVersion,
    metadata: { resourceVersion: '7999', continue: 'token', remainingItemCount: 2 },
    items: [item, item, item],
  }

  it('a list has the same bytes in any number of chunks', () => {
    const text = `${JSON.stringify(expected)}\n`
    const [a, b, c] = [stored(), stored(), stored()]
    assert.equal(list(encoders.response(json), meta, [[a, b, c]]), text)
    assert.equal(list(encoders.response(json), meta, [[a], [b, c]]), text)
  })

  it('a list in chunks is indented as a whole document', () => {
    const text = JSON.stringify(expected, undefined, 2)
    assert.equal(list(encoders.response(pretty), meta, [[stored()], [stored(), stored()]]), text)
  })

  it('a list without events has empty items', () => {
    const empty = { kind: 'EventList', apiVersion, metadata: { resourceVersion: '5' }, items: [] }
    const meta = { resourceVersion: '5', continue: undefined, remainingItemCount: undefined }
    assert.equal(list(encoders.response(json), meta, []), `${JSON.stringify(empty)}\n`)
    assert.equal(list(encoders.response(pretty), meta, []), JSON.stringify(empty, undefined, 2))
  })
})

describe('EventEncoders: partial objects', () => {
  it('a partial object has metadata only', () => {
    assert.deepEqual(parsed(encoders.response(partial).one(stored())), partialObject)
    const old = encoders.response({ ...partial, metaVersion: 'v1beta1' }).one(stored())
    assert.equal((parsed(old) as { apiVersion: string }).apiVersion, 'meta.k8s.io/v1beta1')
  })

  it('a partial object has its kind in a list too', () => {
    const meta = { resourceVersion: '5' }
    assert.deepEqual(parsed(list(encoders.response(partial), meta, [[stored()], [stored()]])), {
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.k8s.io/v1',
      metadata: meta,
      items: [partialObject, partialObject],
    })
  })

  it('an empty list of partial objects has null items', () => {
    assert.equal(
      list(encoders.response(partial), { resourceVersion: '5' }, []),
      '{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":null}\n',
    )
  })
})

describe('EventEncoders: tables', () => {
  const start = {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { resourceVersion },
    columnDefinitions: eventColumns,
  }

  for (const [includeObject, object] of [
    ['None', null],
    ['Metadata', partialObject],
    ['Object', whole],
  ] as const) {
    it(`a table has the object in its rows that includeObject=${includeObject} selects`, () => {
      const encoder = encoders.response({ ...table, includeObject })
      assert.deepEqual(parsed(encoder.one(stored())), { ...start, rows: [{ cells, object }] })
    })
  }

  it('a table of a list has the metadata of the list', () => {
    const meta = { resourceVersion: '5', continue: 'c', remainingItemCount: 1 }
    const row = { cells, object: partialObject }
    const encoder = encoders.response(table)
    const text = list(encoder, meta, [[stored(), stored()], [stored()]])
    assert.deepEqual(parsed(text), { ...start, metadata: meta, rows: [row, row, row] })
    assert.deepEqual(parsed(list(encoder, meta, [])), { ...start, metadata: meta, rows: [] })
  })

  it('a table of an event without a version has no version', () => {
    const shown = unstoredEvent(stored().body)
    assert.deepEqual(
      (parsed(encoders.response(table).one(shown)) as { metadata: object }).metadata,
      {},
    )
  })
})

describe('EventEncoders: YAML', () => {
  const event = stored({ metadata: { name: 'a' }, eventTime: null, regarding: {}, type: 'Normal' })

  it('an event as YAML has its members sorted by name', () => {
    assert.equal(
      encoders.response(yaml).one(event),
      `apiVersion: events.k8s.io/v1\neventTime: null\nkind: Event\nmetadata:\n  name: a\n  resourceVersion: "${resourceVersion}"\nregarding: {}\ntype: Normal\n`,
    )
  })

  it('a list as YAML has its items before its metadata', () => {
    const entry = `- eventTime: null\n  metadata:\n    name: a\n    resourceVersion: "${resourceVersion}"\n  regarding: {}\n  type: Normal\n`
    const meta = { resourceVersion: '5' }
    const end = 'kind: EventList\nmetadata:\n  resourceVersion: "5"\n'
    assert.equal(
      list(encoders.response(yaml), meta, [[event], [event]]),
      `apiVersion: events.k8s.io/v1\nitems:\n${entry}${entry}${end}`,
    )
    assert.equal(
      list(encoders.response(yaml), meta, []),
      `apiVersion: events.k8s.io/v1\nitems: []\n${end}`,
    )
  })

  it('a table as YAML has its rows last', () => {
    const encoder = encoders.response({
      ...table,
      mediaType: 'application/yaml',
      includeObject: 'None',
    })
    const text = list(encoder, { resourceVersion: '5' }, [[event]])
    assert.match(text, /^apiVersion: meta.k8s.io\/v1\ncolumnDefinitions:\n- description: /)
    assert.match(text, /\nrows:\n- cells:\n {2}- <unknown>\n {2}- Normal\n/)
    assert.match(text, /\n {2}- <unknown>\n {2}- a\n {2}object: null\n$/)
  })
})

describe('EventEncoders: watch frames', () => {
  const { first, next } = encoders.watch(json)
  const before = stored({ metadata: { name: 'a' }, note: 'before' })
  const old: StoredEvent = new StoredBody({
    ...before,
    version: versionOfChange(5, 0),
    key: before.key,
  })
  const created: WatchItem = { type: 'put', stored: stored(), previous: undefined }
  const changed: WatchItem = { type: 'put', stored: stored(), previous: old }
  const deleted: WatchItem = { type: 'delete', stored: stored() }

  function frameOf(encoder: FrameEncoder, item: WatchItem): unknown {
    const text = encoder.encode(item).toString()
    assert.match(text, /^[^\n]+\n$/)
    return parsed(text)
  }

  it('a change is encoded with its own type', () => {
    assert.deepEqual(frameOf(next.natural, created), { type: 'ADDED', object: whole })
    assert.deepEqual(frameOf(next.natural, changed), { type: 'MODIFIED', object: whole })
    assert.deepEqual(frameOf(next.natural, deleted), { type: 'DELETED', object: whole })
  })

  it('an event that begins to match is ADDED', () => {
    assert.deepEqual(frameOf(next.entered, changed), { type: 'ADDED', object: whole })
    assert.deepEqual(parsed(next.present(stored())), { type: 'ADDED', object: whole })
  })

  it('an event that no longer matches is DELETED, with its last matching state and the new version', () => {
    const { kind, apiVersion } = whole
    const object = { kind, apiVersion, metadata: { resourceVersion, name: 'a' }, note: 'before' }
    assert.deepEqual(frameOf(next.left, changed), { type: 'DELETED', object })
    assert.deepEqual(frameOf(next.left, deleted), { type: 'DELETED', object: whole })
  })

  it('a bookmark contains an event that has only a version', () => {
    const empty = {
      kind: 'Event',
      apiVersion: 'events.k8s.io/v1',
      metadata: { resourceVersion },
      eventTime: null,
      regarding: {},
      deprecatedSource: {},
      deprecatedFirstTimestamp: null,
      deprecatedLastTimestamp: null,
    }
    assert.deepEqual(parsed(next.bookmark(version, false)), { type: 'BOOKMARK', object: empty })
    const annotations = { 'k8s.io/initial-events-end': 'true' }
    assert.deepEqual(parsed(next.bookmark(version, true)), {
      type: 'BOOKMARK',
      object: { ...empty, metadata: { resourceVersion, annotations } },
    })
  })

  it('an error frame contains the Status', () => {
    const status = new StatusError('Expired', 'too old').status()
    assert.deepEqual(parsed(next.error(status)), { type: 'ERROR', object: status })
  })

  it('watches of the same representation share one encoder', () => {
    assert.equal(first, next)
    assert.equal(encoders.watch({ ...yaml, isPretty: true }), encoders.watch(json))
    assert.notEqual(encoders.watch(partial).next, next)
  })

  it('a watch of partial objects sends metadata only', () => {
    const frame = frameOf(encoders.watch(partial).next.natural, created)
    assert.deepEqual(frame, { type: 'ADDED', object: partialObject })
  })

  it('a watch of tables sends the columns once', () => {
    const columnsOf = (frame: unknown) =>
      (frame as { object: { columnDefinitions: unknown } }).object.columnDefinitions
    const tables = encoders.watch(table)
    assert.deepEqual(columnsOf(frameOf(tables.first.natural, created)), eventColumns)
    assert.deepEqual(columnsOf(parsed(tables.first.bookmark(version, true))), eventColumns)
    assert.equal(columnsOf(frameOf(tables.next.natural, created)), null)
    assert.equal(columnsOf(parsed(tables.next.present(stored()))), null)
  })
})

describe('EventEncoders: any event', () => {
  const texts = fc.string({ unit: 'grapheme', maxLength: 12 })
  const events = fc.record({
    metadata: fc.record(
      {
        name: texts,
        labels: fc.dictionary(texts, texts, { maxKeys: 3 }),
        managedFields: fc.array(fc.record({ fieldsV1: fc.jsonValue({ maxDepth: 3 }) }), {
          maxLength: 2,
        }),
      },
      { requiredKeys: [] },
    ),
    eventTime: fc.constantFrom(null, '2026-01-02T03:04:05.678901Z'),
    note: texts,
    series: fc.jsonValue({ maxDepth: 2 }),
  })

  it('an event has the same metadata in every representation, alone and in a list', () => {
    const all: readonly Representation[] = [
      json,
      partial,
      table,
      { ...table, includeObject: 'Object' },
    ]
    fc.assert(
      fc.property(fc.array(events, { minLength: 1, maxLength: 4 }), (made) => {
        const originals = made.map((event) => JSON.parse(JSON.stringify(event)))
        const shown = originals.map((event) => stored(event))
        for (const wanted of all) {
          for (const isPretty of [false, true]) {
            const encoder = encoders.response({ ...wanted, isPretty })
            const text = list(
              encoder,
              { resourceVersion },
              [shown.slice(0, 1), shown.slice(1)].filter((page) => page.length > 0),
            )
            assert.deepEqual(metadataIn(text), originals.map(withVersion))
            const [one] = shown
            if (one !== undefined) {
              assert.deepEqual(metadataIn(encoder.one(one).toString()), [withVersion(originals[0])])
            }
          }
        }
      }),
      { numRuns: 60 },
    )
  })

  function withVersion(event: { metadata: object }): object {
    return { resourceVersion, ...event.metadata }
  }

  interface Shown {
    readonly metadata?: object
    readonly object?: Shown
    readonly items?: readonly Shown[]
    readonly rows?: readonly Shown[]
  }

  function metadataIn(text: string): unknown[] {
    const response: Shown = JSON.parse(text)
    const entries = response.items ?? response.rows ?? [response]
    return entries.map(({ metadata, object }) => metadata ?? object?.metadata)
  }
})
