import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Event, ObjectMeta, ObjectReference } from './event.ts'
import { createProblems, updateProblems } from './event-validation.ts'
import type { FieldError } from './field-error.ts'

const TIME = '2026-01-02T03:04:05.678901Z'
const NAME_PART =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const LABEL =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

/** Members to change; undefined takes one away. */
type Change = { readonly [Member in keyof Event]?: Event[Member] | undefined }

function eventWith(change: Change, meta: ObjectMeta = {}): Event {
  const whole = {
    metadata: { name: 'a', namespace: 'shop', ...meta },
    eventTime: TIME,
    action: 'Binding',
    reason: 'Scheduled',
    type: 'Normal',
    reportingController: 'example.com/scheduler',
    reportingInstance: 'scheduler-0',
    regarding: { kind: 'Pod', namespace: 'shop', name: 'web-0' },
    note: 'Successfully assigned web-0 to node-1',
    ...change,
  }
  const set = Object.entries(whole).filter(([, value]) => value !== undefined)
  return { metadata: {}, ...Object.fromEntries(set) }
}

function texts(problems: readonly FieldError[]): readonly string[] {
  return problems.map(({ field, body }) => `${field}: ${body}`)
}

type Row = readonly [title: string, event: Event, ...problems: string[]]

const created: readonly Row[] = [
  ['a whole event is fine', eventWith({})],
  [
    'nothing but a name and namespace lacks the rest',
    { metadata: { name: 'a', namespace: 'shop' } },
    'regarding.namespace: Invalid value: "": does not match event.namespace',
    'eventTime: Required value',
    'type: Invalid value: "": has invalid value:  (must be Normal or Warning)',
  ],
  [
    'an empty one lacks its name too',
    { metadata: { namespace: 'shop' } },
    'regarding.namespace: Invalid value: "": does not match event.namespace',
    'metadata.name: Required value: name or generateName is required',
    'eventTime: Required value',
    'type: Invalid value: "": has invalid value:  (must be Normal or Warning)',
  ],
  ['eventTime is required', eventWith({ eventTime: undefined }), 'eventTime: Required value'],
  ['action is required', eventWith({ action: undefined }), 'action: Required value'],
  ['reason is required', eventWith({ reason: undefined }), 'reason: Required value'],
  ['an empty reason is none', eventWith({ reason: '' }), 'reason: Required value'],
  [
    'reportingInstance is required',
    eventWith({ reportingInstance: undefined }),
    'reportingInstance: Required value',
  ],
  [
    'reportingController is required, and told three times',
    eventWith({ reportingController: undefined }),
    'reportingController: Required value',
    'reportingController: Invalid value: "": name part must be non-empty',
    `reportingController: Invalid value: "": ${NAME_PART}`,
  ],
  [
    'reportingController is a qualified name',
    eventWith({ reportingController: 'bad controller!' }),
    `reportingController: Invalid value: "bad controller!": ${NAME_PART}`,
  ],
  [
    'words and note take as many bytes as they may',
    eventWith({
      action: 'x'.repeat(128),
      reason: 'é'.repeat(64),
      reportingInstance: 'x'.repeat(128),
      note: 'é'.repeat(512),
    }),
  ],
  [
    'action has a limit',
    eventWith({ action: 'x'.repeat(129) }),
    'action: Invalid value: "": can have at most 128 characters',
  ],
  [
    'reason has a limit in bytes',
    eventWith({ reason: 'é'.repeat(65) }),
    'reason: Invalid value: "": can have at most 128 characters',
  ],
  [
    'reportingInstance has a limit',
    eventWith({ reportingInstance: 'x'.repeat(129) }),
    'reportingInstance: Invalid value: "": can have at most 128 characters',
  ],
  [
    'note has a limit',
    eventWith({ note: 'x'.repeat(1025) }),
    'note: Invalid value: "": can have at most 1024 characters',
  ],
  [
    'note has a limit in bytes',
    eventWith({ note: 'é'.repeat(513) }),
    'note: Invalid value: "": can have at most 1024 characters',
  ],
  ['note may be missing', eventWith({ note: undefined })],
  ['a warning is a type', eventWith({ type: 'Warning' })],
  [
    'type is required',
    eventWith({ type: undefined }),
    'type: Invalid value: "": has invalid value:  (must be Normal or Warning)',
  ],
  [
    'type is one of two',
    eventWith({ type: 'Info' }),
    'type: Invalid value: "": has invalid value: Info (must be Normal or Warning)',
  ],
  [
    'a series is of two or more',
    eventWith({ series: { count: 1, lastObservedTime: TIME } }),
    'series.count: Invalid value: "": should be at least 2',
  ],
  [
    'a series is not negative',
    eventWith({ series: { count: -3, lastObservedTime: TIME } }),
    'series.count: Invalid value: "": should be at least 2',
  ],
  [
    'a series has a time',
    eventWith({ series: { count: 2 } }),
    'series.lastObservedTime: Required value',
  ],
  [
    'an empty series is one',
    eventWith({ series: {} }),
    'series.count: Invalid value: "": should be at least 2',
    'series.lastObservedTime: Required value',
  ],
  ['a whole series is fine', eventWith({ series: { count: 2, lastObservedTime: TIME } })],
  [
    'fields of the older form stay unset',
    eventWith({
      deprecatedCount: 1,
      deprecatedFirstTimestamp: '2026-01-02T03:04:05Z',
      deprecatedLastTimestamp: '2026-01-02T03:04:05Z',
      deprecatedSource: { component: 'x' },
    }),
    'deprecatedFirstTimestamp: Invalid value: "": needs to be unset',
    'deprecatedLastTimestamp: Invalid value: "": needs to be unset',
    'deprecatedCount: Invalid value: "": needs to be unset',
    'deprecatedSource: Invalid value: "": needs to be unset',
  ],
  [
    'a source with a host alone is set',
    eventWith({ deprecatedSource: { host: 'x' } }),
    'deprecatedSource: Invalid value: "": needs to be unset',
  ],
  ['an empty source is unset', eventWith({ deprecatedSource: {} })],
  [
    'regarding may be in another namespace',
    eventWith({ regarding: { kind: 'Node', namespace: 'elsewhere' } }),
  ],
  [
    'regarding is in some namespace',
    eventWith({ regarding: { kind: 'Pod' } }),
    'regarding.namespace: Invalid value: "": does not match event.namespace',
  ],
  [
    'regarding may be in no namespace for an event in default',
    eventWith({ regarding: { kind: 'Node' } }, { namespace: 'default' }),
  ],
  [
    'regarding may be in no namespace for an event in kube-system',
    eventWith({ regarding: { kind: 'Node' } }, { namespace: 'kube-system' }),
  ],
  [
    'regarding is in the same namespace when there is no time',
    eventWith({ eventTime: undefined, regarding: { namespace: 'other' } }),
    'regarding.namespace: Invalid value: "other": does not match event.namespace',
    'eventTime: Required value',
  ],
  [
    'no time and no namespace suit kube-system less',
    eventWith({ eventTime: undefined, regarding: undefined }, { namespace: 'kube-system' }),
    'regarding.namespace: Invalid value: "": does not match event.namespace',
    'eventTime: Required value',
  ],
  [
    'a bad namespace is told as what it is not',
    eventWith({}, { namespace: 'Bad_NS' }),
    `namespace: Invalid value: "Bad_NS": ${SUBDOMAIN}`,
    `metadata.namespace: Invalid value: "Bad_NS": ${LABEL}`,
  ],
  [
    'a long namespace',
    eventWith({}, { namespace: 'x'.repeat(64) }),
    `metadata.namespace: Invalid value: "${'x'.repeat(64)}": must be no more than 63 characters`,
  ],
  [
    'a bad finalizer is told by both rules',
    eventWith({}, { finalizers: ['bad finalizer!'] }),
    `metadata.finalizers: Invalid value: "bad finalizer!": ${NAME_PART}`,
    'metadata.finalizers[0]: Invalid value: "bad finalizer!": name is neither a standard finalizer name nor is it fully qualified',
  ],
  ['a bad name', eventWith({}, { name: 'A' }), `metadata.name: Invalid value: "A": ${SUBDOMAIN}`],
]

for (const [title, event, ...problems] of created) {
  test(`createProblems: ${title}`, () => assert.deepEqual(texts(createProblems(event)), problems))
}

const stored = eventWith(
  {
    regarding: {
      kind: 'Pod',
      namespace: 'shop',
      name: 'web-0',
      uid: '00000000-0000-4000-8000-000000000001',
      apiVersion: 'v1',
      resourceVersion: '42',
      fieldPath: 'spec.containers{app}',
    },
    related: { kind: 'Node', name: 'node-1' },
    series: { count: 3, lastObservedTime: TIME },
  },
  { uid: 'u', labels: { app: 'web' } },
)

function changed(change: Change, meta: ObjectMeta = {}): Event {
  return eventWith({ ...stored, metadata: { ...stored.metadata, ...meta }, ...change })
}

const updated: readonly Row[] = [
  [
    'metadata and series may change',
    changed({ series: { count: 4, lastObservedTime: TIME } }, { labels: { new: 'label' } }),
  ],
  ['a series may go', changed({ series: undefined })],
  [
    'a changed series is checked',
    changed({ series: { count: 1, lastObservedTime: TIME } }),
    'series.count: Invalid value: "": should be at least 2',
  ],
  [
    'eventTime',
    changed({ eventTime: '2026-01-02T03:04:05.678902Z' }),
    'eventTime: Invalid value: "2026-01-02T03:04:05.678902Z": field is immutable',
  ],
  [
    'eventTime taken away',
    changed({ eventTime: undefined }),
    'eventTime: Invalid value: null: field is immutable',
  ],
  ['action', changed({ action: 'Other' }), 'action: Invalid value: "Other": field is immutable'],
  [
    'reason, told twice',
    changed({ reason: 'Other' }),
    'reason: Invalid value: "Other": field is immutable',
    'reason: Invalid value: "Other": field is immutable',
  ],
  ['note', changed({ note: 'say "x"' }), 'note: Invalid value: "say \\"x\\"": field is immutable'],
  ['note taken away', changed({ note: undefined }), 'note: Invalid value: "": field is immutable'],
  ['type', changed({ type: 'Warning' }), 'type: Invalid value: "Warning": field is immutable'],
  [
    'reportingController',
    changed({ reportingController: 'other' }),
    'reportingController: Invalid value: "other": field is immutable',
  ],
  [
    'reportingInstance',
    changed({ reportingInstance: 'other' }),
    'reportingInstance: Invalid value: "other": field is immutable',
  ],
  [
    'regarding',
    changed({ regarding: { kind: 'Pod', namespace: 'shop', name: '<other>' } }),
    'regarding: Invalid value: {"Kind":"Pod","Namespace":"shop","Name":"\\u003cother\\u003e","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable',
  ],
  [
    'related',
    changed({ related: { kind: 'X' } }),
    'related: Invalid value: {"Kind":"X","Namespace":"","Name":"","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable',
  ],
  [
    'related taken away',
    changed({ related: undefined }),
    'related: Invalid value: null: field is immutable',
  ],
  [
    'deprecatedCount',
    changed({ deprecatedCount: 9 }),
    'deprecatedCount: Invalid value: 9: field is immutable',
  ],
  [
    'deprecatedSource',
    changed({ deprecatedSource: { component: 'z' } }),
    'deprecatedSource: Invalid value: {"Component":"z","Host":""}: field is immutable',
  ],
  [
    'deprecatedFirstTimestamp',
    changed({ deprecatedFirstTimestamp: '2026-01-02T03:04:05Z' }),
    'deprecatedFirstTimestamp: Invalid value: "2026-01-02T03:04:05Z": field is immutable',
  ],
  [
    'deprecatedLastTimestamp',
    changed({ deprecatedLastTimestamp: '2026-01-02T03:04:05Z' }),
    'deprecatedLastTimestamp: Invalid value: "2026-01-02T03:04:05Z": field is immutable',
  ],
  [
    'several fields, in their order',
    changed({ regarding: undefined, note: undefined, reportingController: undefined }),
    'regarding.namespace: Invalid value: "": does not match event.namespace',
    'reportingController: Required value',
    'reportingController: Invalid value: "": name part must be non-empty',
    `reportingController: Invalid value: "": ${NAME_PART}`,
    'regarding: Invalid value: {"Kind":"","Namespace":"","Name":"","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable',
    'note: Invalid value: "": field is immutable',
    'reportingController: Invalid value: "": field is immutable',
  ],
  [
    'a bad label, told three times',
    changed({}, { labels: { 'bad!': 'label' } }),
    ...Array<string>(3).fill(`metadata.labels: Invalid value: "bad!": ${NAME_PART}`),
  ],
  [
    'another UID, told twice',
    changed({}, { uid: 'v' }),
    ...Array<string>(2).fill('metadata.uid: Invalid value: "v": field is immutable'),
  ],
  [
    'a beginning of a name that fits no path',
    changed({}, { generateName: 'a/b' }),
    'metadata.generateName: Invalid value: "a/b": may not contain \'/\'',
  ],
]

for (const [title, event, ...problems] of updated) {
  test(`updateProblems: ${title}`, () => {
    assert.deepEqual(texts(updateProblems(event, stored)), problems)
  })
}

test('updateProblems: an unchanged series is not checked again', () => {
  const old = eventWith({ series: {} })
  assert.deepEqual(updateProblems(eventWith({ series: { count: 0 } }), old), [])
})

test('updateProblems: an older event keeps its fields without being held to the newer rules', () => {
  const old = eventWith({
    eventTime: undefined,
    action: undefined,
    type: 'Whatever',
    deprecatedCount: 4,
    deprecatedSource: { component: 'kubelet' },
  })
  assert.deepEqual(
    updateProblems({ ...old, metadata: { ...old.metadata, labels: { a: 'b' } } }, old),
    [],
  )
})

test('updateProblems: an empty structure is the same as none, except for related', () => {
  const old = eventWith({ regarding: undefined }, { namespace: 'default' })
  const repeated = { ...old, regarding: {}, deprecatedSource: {}, deprecatedCount: 0 }
  assert.deepEqual(updateProblems(repeated, old), [])
  assert.deepEqual(updateProblems(old, repeated), [])
  assert.equal(updateProblems({ ...old, related: {} }, old).length, 1)
})

test('createProblems: labels by the hundred thousand make an answer of bounded size', () => {
  const labels = Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`!${at}`, '!']))
  assert.equal(createProblems(eventWith({}, { labels })).length, 100)
  assert.equal(updateProblems(eventWith({}, { labels }), stored).length, 100)
})

test('createProblems: values of megabytes are not repeated whole', () => {
  const long = '<'.repeat(1_000_000)
  const regarding = { namespace: 'shop', name: long }
  const event = eventWith({ type: long, action: long, regarding }, { name: long })
  assert.ok(texts(createProblems(event)).join().length < 20_000)
  assert.ok(texts(updateProblems(event, stored)).join().length < 100_000)
})

const text = fc.string({ unit: 'binary', maxLength: 6 })
const word = fc.oneof(
  text,
  fc.constantFrom('', 'a', 'shop', 'example.com/x', 'Normal', '__proto__'),
)
const map = fc.dictionary(fc.oneof(word, fc.constantFrom('__proto__', 'constructor')), word)
const reference: fc.Arbitrary<ObjectReference> = fc.record(
  { kind: word, namespace: word, name: word, fieldPath: word },
  { requiredKeys: [] },
)
const anyEvent: fc.Arbitrary<Event> = fc.record(
  {
    metadata: fc.record(
      {
        name: word,
        generateName: word,
        namespace: word,
        uid: word,
        generation: fc.integer(),
        deletionTimestamp: fc.constant('2026-01-02T03:04:05Z'),
        deletionGracePeriodSeconds: fc.nat(),
        labels: map,
        annotations: map,
        finalizers: fc.array(fc.oneof(word, fc.constantFrom('orphan', 'foregroundDeletion'))),
        ownerReferences: fc.array(
          fc.record(
            { apiVersion: word, kind: word, name: word, uid: word, controller: fc.boolean() },
            { requiredKeys: [] },
          ),
        ),
      },
      { requiredKeys: [] },
    ),
    eventTime: fc.constant(TIME),
    series: fc.record(
      { count: fc.integer(), lastObservedTime: fc.constant(TIME) },
      { requiredKeys: [] },
    ),
    reportingController: word,
    reportingInstance: word,
    action: word,
    reason: word,
    regarding: reference,
    related: reference,
    note: text,
    type: word,
    deprecatedSource: fc.record({ component: word, host: word }, { requiredKeys: [] }),
    deprecatedCount: fc.integer(),
  },
  { requiredKeys: ['metadata'] },
)

test('event validation: any event gets a verdict, and always the same one', () => {
  fc.assert(
    fc.property(anyEvent, anyEvent, (event, old) => {
      const copy = structuredClone(event)
      assert.deepEqual(createProblems(copy), createProblems(event))
      assert.deepEqual(updateProblems(copy, old), updateProblems(event, old))
    }),
  )
})

const validEvent: fc.Arbitrary<Event> = fc
  .record({
    label: fc.stringMatching(/^[A-Za-z0-9]{1,8}$/),
    note: fc.string({ unit: 'binary', maxLength: 300 }),
    type: fc.constantFrom('Normal', 'Warning'),
    related: fc.option(reference, { nil: undefined }),
    count: fc.integer({ min: 2 }),
    regarding: reference,
  })
  .map(({ label, note, type, related, count, regarding }) =>
    eventWith(
      {
        note,
        type,
        related,
        series: { count, lastObservedTime: TIME },
        regarding: { ...regarding, namespace: 'shop' },
      },
      { labels: { [label]: label }, annotations: { [`Example.com/${label}`]: note } },
    ),
  )

test('event validation: a valid event stays valid as an update of itself', () => {
  fc.assert(
    fc.property(validEvent, (event) => {
      assert.deepEqual(createProblems(event), [])
      assert.deepEqual(updateProblems(structuredClone(event), event), [])
    }),
  )
})
