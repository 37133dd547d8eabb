import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { eventsGroup } from '../api/event-groups.ts'
import { StatusError } from '../api/status.ts'
import type { FrameEncoder } from '../storage/frames.ts'
import { formatVersion, versionOfChange } from '../storage/resource-version.ts'
import type { StoredEvent, WatchItem } from '../storage/storage.ts'
import { StoredBody } from '../storage/stored-form.ts'
import type { AnswerForm } from './answer-form.ts'
import { type ShownEvent, unstoredEvent } from './event-bytes.ts'
import { EventForms } from './event-forms.ts'
import type { EventView, ListMeta } from './event-shapes.ts'
import { viewOf } from './event-view.ts'
import type { Representation } from './representation.ts'
import { eventColumns } from './table.ts'

const now = Date.parse('2026-01-02T04:04:05Z')
const forms = new EventForms(viewOf(eventsGroup('events.k8s.io')), () => now)
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
    key: { namespace: 'ns', name: 'a' },
    body,
    versionOffset,
    version,
    writtenAtMs: 0,
  })
}

function list(form: AnswerForm, meta: ListMeta, pages: readonly (readonly ShownEvent[])[]): string {
  let text = String(form.listHead(meta, 0))
  let count = 0
  for (const page of pages) {
    text += String(form.listEntries(page, count))
    count += page.length
  }
  return text + String(form.listTail(meta, count))
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
const cells = ['59m', 'Normal', 'Scheduled', 'pod/web-0', '', '', fields.note.trim(), '59m', 1, 'a']

describe('an event in JSON', () => {
  it('is its kind, its version and what is stored, on one line', () => {
    assert.equal(forms.answer(json).one(stored()).toString(), `${JSON.stringify(whole)}\n`)
  })

  it('has no version when it was not stored', () => {
    const shown = unstoredEvent(Buffer.from(JSON.stringify({ metadata, ...fields })))
    const { kind, apiVersion } = whole
    assert.deepEqual(parsed(forms.answer(json).one(shown)), {
      kind,
      apiVersion,
      metadata,
      ...fields,
    })
  })

  it('is indented without a newline at its end', () => {
    assert.equal(forms.answer(pretty).one(stored()), JSON.stringify(whole, undefined, 2))
  })

  it('goes by the names of its group', () => {
    const view: EventView = {
      apiVersion: 'v1',
      body: (body) => Buffer.from(body.toString().replace('"regarding":', '"involvedObject":')),
      isAsStored: false,
      message: () => Buffer.alloc(0),
    }
    const core = new EventForms(view, () => now)
    const { regarding, ...rest } = whole
    const expected = { ...rest, apiVersion: 'v1', involvedObject: regarding }
    assert.deepEqual(parsed(core.answer(json).one(stored())), expected)
    const { kind, apiVersion, ...item } = expected
    assert.deepEqual(parsed(list(core.answer(json), {}, [[stored()]])), {
      kind: 'EventList',
      apiVersion: 'v1',
      metadata: {},
      items: [item],
    })
    const rows = core.answer({ ...table, includeObject: 'Object' }).one(stored())
    assert.deepEqual((parsed(rows) as { rows: unknown[] }).rows, [{ cells, object: expected }])
  })
})

describe('a list in JSON', () => {
  const meta = { remainingItemCount: 2, continue: 'token', resourceVersion: '7999' }
  const { kind, apiVersion, ...item } = whole
  const expected = {
    kind: 'EventList',
    apiVersion,
    metadata: { resourceVersion: '7999', continue: 'token', remainingItemCount: 2 },
    items: [item, item, item],
  }

  it('is the same in any number of pieces', () => {
    const text = `${JSON.stringify(expected)}\n`
    const [a, b, c] = [stored(), stored(), stored()]
    assert.equal(list(forms.answer(json), meta, [[a, b, c]]), text)
    assert.equal(list(forms.answer(json), meta, [[a], [b, c]]), text)
  })

  it('is indented as a whole would be', () => {
    const text = JSON.stringify(expected, undefined, 2)
    assert.equal(list(forms.answer(pretty), meta, [[stored()], [stored(), stored()]]), text)
  })

  it('without events has an empty list in it', () => {
    const empty = { kind: 'EventList', apiVersion, metadata: { resourceVersion: '5' }, items: [] }
    const meta = { resourceVersion: '5', continue: undefined, remainingItemCount: undefined }
    assert.equal(list(forms.answer(json), meta, []), `${JSON.stringify(empty)}\n`)
    assert.equal(list(forms.answer(pretty), meta, []), JSON.stringify(empty, undefined, 2))
  })
})

describe('a partial object', () => {
  it('is the metadata and nothing else', () => {
    assert.deepEqual(parsed(forms.answer(partial).one(stored())), partialObject)
    const old = forms.answer({ ...partial, metaVersion: 'v1beta1' }).one(stored())
    assert.equal((parsed(old) as { apiVersion: string }).apiVersion, 'meta.k8s.io/v1beta1')
  })

  it('has its kind in a list, too', () => {
    const meta = { resourceVersion: '5' }
    assert.deepEqual(parsed(list(forms.answer(partial), meta, [[stored()], [stored()]])), {
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.k8s.io/v1',
      metadata: meta,
      items: [partialObject, partialObject],
    })
  })

  it('is not in a list that has none', () => {
    assert.equal(
      list(forms.answer(partial), { resourceVersion: '5' }, []),
      '{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"5"},"items":null}\n',
    )
  })
})

describe('a table', () => {
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
    it(`has rows with ${includeObject}`, () => {
      const form = forms.answer({ ...table, includeObject })
      assert.deepEqual(parsed(form.one(stored())), { ...start, rows: [{ cells, object }] })
    })
  }

  it('of a list has the metadata of the list', () => {
    const meta = { resourceVersion: '5', continue: 'c', remainingItemCount: 1 }
    const row = { cells, object: partialObject }
    const form = forms.answer(table)
    const text = list(form, meta, [[stored(), stored()], [stored()]])
    assert.deepEqual(parsed(text), { ...start, metadata: meta, rows: [row, row, row] })
    assert.deepEqual(parsed(list(form, meta, [])), { ...start, metadata: meta, rows: [] })
  })

  it('of an event without a version has none either', () => {
    const shown = unstoredEvent(stored().body)
    assert.deepEqual((parsed(forms.answer(table).one(shown)) as { metadata: object }).metadata, {})
  })
})

describe('YAML', () => {
  const event = stored({ metadata: { name: 'a' }, eventTime: null, regarding: {}, type: 'Normal' })

  it('of an event has its members in the order of their names', () => {
    assert.equal(
      forms.answer(yaml).one(event),
      `apiVersion: events.k8s.io/v1\neventTime: null\nkind: Event\nmetadata:\n  name: a\n  resourceVersion: "${resourceVersion}"\nregarding: {}\ntype: Normal\n`,
    )
  })

  it('of a list has the events before the metadata', () => {
    const entry = `- eventTime: null\n  metadata:\n    name: a\n    resourceVersion: "${resourceVersion}"\n  regarding: {}\n  type: Normal\n`
    const meta = { resourceVersion: '5' }
    const end = 'kind: EventList\nmetadata:\n  resourceVersion: "5"\n'
    assert.equal(
      list(forms.answer(yaml), meta, [[event], [event]]),
      `apiVersion: events.k8s.io/v1\nitems:\n${entry}${entry}${end}`,
    )
    assert.equal(
      list(forms.answer(yaml), meta, []),
      `apiVersion: events.k8s.io/v1\nitems: []\n${end}`,
    )
  })

  it('of a table has the rows last', () => {
    const form = forms.answer({ ...table, mediaType: 'application/yaml', includeObject: 'None' })
    const text = list(form, { resourceVersion: '5' }, [[event]])
    assert.match(text, /^apiVersion: meta.k8s.io\/v1\ncolumnDefinitions:\n- description: /)
    assert.match(text, /\nrows:\n- cells:\n {2}- <unknown>\n {2}- Normal\n/)
    assert.match(text, /\n {2}- 1\n {2}- a\n {2}object: null\n$/)
  })
})

describe('a watch', () => {
  const { first, next } = forms.watch(json)
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

  it('tells a change as what it is', () => {
    assert.deepEqual(frameOf(next.natural, created), { type: 'ADDED', object: whole })
    assert.deepEqual(frameOf(next.natural, changed), { type: 'MODIFIED', object: whole })
    assert.deepEqual(frameOf(next.natural, deleted), { type: 'DELETED', object: whole })
  })

  it('tells what comes into view as new', () => {
    assert.deepEqual(frameOf(next.entered, changed), { type: 'ADDED', object: whole })
    assert.deepEqual(parsed(next.present(stored())), { type: 'ADDED', object: whole })
  })

  it('tells what goes out of view as it was, under the version of the change', () => {
    const { kind, apiVersion } = whole
    const object = { kind, apiVersion, metadata: { resourceVersion, name: 'a' }, note: 'before' }
    assert.deepEqual(frameOf(next.left, changed), { type: 'DELETED', object })
    assert.deepEqual(frameOf(next.left, deleted), { type: 'DELETED', object: whole })
  })

  it('marks how far it has come with an event that is otherwise empty', () => {
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

  it('ends with the Status of what went wrong', () => {
    const status = new StatusError('Expired', 'too old').status()
    assert.deepEqual(parsed(next.error(status)), { type: 'ERROR', object: status })
  })

  it('shares its frames with every watch of the same form', () => {
    assert.equal(first, next)
    assert.equal(forms.watch({ ...yaml, isPretty: true }), forms.watch(json))
    assert.notEqual(forms.watch(partial).next, next)
  })

  it('of partial objects tells no more than their metadata', () => {
    const frame = frameOf(forms.watch(partial).next.natural, created)
    assert.deepEqual(frame, { type: 'ADDED', object: partialObject })
  })

  it('of tables tells the columns once', () => {
    const columnsOf = (frame: unknown) =>
      (frame as { object: { columnDefinitions: unknown } }).object.columnDefinitions
    const tables = forms.watch(table)
    assert.deepEqual(columnsOf(frameOf(tables.first.natural, created)), eventColumns)
    assert.deepEqual(columnsOf(parsed(tables.first.bookmark(version, true))), eventColumns)
    assert.equal(columnsOf(frameOf(tables.next.natural, created)), null)
    assert.equal(columnsOf(parsed(tables.next.present(stored()))), null)
  })
})

describe('any event', () => {
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

  it('has the same metadata in every form, alone and in a list', () => {
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
            const form = forms.answer({ ...wanted, isPretty })
            const text = list(
              form,
              { resourceVersion },
              [shown.slice(0, 1), shown.slice(1)].filter((page) => page.length > 0),
            )
            assert.deepEqual(metadataIn(text), originals.map(withVersion))
            const [one] = shown
            if (one !== undefined) {
              assert.deepEqual(metadataIn(form.one(one).toString()), [withVersion(originals[0])])
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
    const answer: Shown = JSON.parse(text)
    const entries = answer.items ?? answer.rows ?? [answer]
    return entries.map(({ metadata, object }) => metadata ?? object?.metadata)
  }
})
