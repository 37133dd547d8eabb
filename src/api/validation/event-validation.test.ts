import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Event, ObjectMeta, ObjectReference } from '../event.ts'
import { createProblems, updateProblems } from './event-validation.ts'
import type { FieldError } from './field-error.ts'

const TIME = '2026-01-02T03:04:05.678901Z'
const NAME_PART =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const LABEL =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"

/** Members to change; undefined removes a member. */
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
  ['a complete event is valid', eventWith({})],
  [
    'an event with only a name and namespace lacks the other fields',
    { metadata: { name: 'a', namespace: 'shop' } },
    'regarding.namespace: Invalid value: "": does not match event.namespace',
    'eventTime: Required value',
    'type: Invalid value: "": has invalid value:  (must be Normal or Warning)',
  ],
  [
    'an empty event also lacks its name',
    { metadata: { namespace: 'shop' } },
    'regarding.namespace: Invalid value: "": does not match event.namespace',
    'metadata.name: Required value: name or generateName is required',
    'eventTime: Required value',
    'type: Invalid value: "": has invalid value:  (must be Normal or Warning)',
  ],
  ['eventTime is required', eventWith({ eventTime: undefined }), 'eventTime: Required value'],
  ['action is required', eventWith({ action: undefined }), 'action: Required value'],
  ['reason is required', eventWith({ reason: undefined }), 'reason: Required value'],
  ['an empty reason is the same as none', eventWith({ reason: '' }), 'reason: Required value'],
  [
    'reportingInstance is required',
    eventWith({ reportingInstance: undefined }),
    'reportingInstance: Required value',
  ],
  [
    'reportingController is required, and reported three times',
    eventWith({ reportingController: undefined }),
    'reportingController: Required value',
    'reportingController: Invalid value: "": name part must be non-empty',
    `reportingController: Invalid value: "": ${NAME_PART}`,
  ],
  [
    'reportingController must be a qualified name',
    eventWith({ reportingController: 'bad controller!' }),
    `reportingController: Invalid value: "bad controller!": ${NAME_PART}`,
  ],
  [
    'action, reason, reportingInstance and note may fill their limits',
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
  ['note is optional', eventWith({ note: undefined })],
  ['type may be Warning', eventWith({ type: 'Warning' })],
  [
    'type is required',
    eventWith({ type: undefined }),
    'type: Invalid value: "": has invalid value:  (must be Normal or Warning)',
  ],
  [
    'type must be Normal or Warning',
    eventWith({ type: 'Info' }),
    'type: Invalid value: "": has invalid value: Info (must be Normal or Warning)',
  ],
  [
    'the count of a series must be at least two',
    eventWith({ series: { count: 1, lastObservedTime: TIME } }),
    'series.count: Invalid value: "": should be at least 2',
  ],
  [
    'the count of a series must not be negative',
    eventWith({ series: { count: -3, lastObservedTime: TIME } }),
    'series.count: Invalid value: "": should be at least 2',
  ],
  [
    'the time of a series is required',
    eventWith({ series: { count: 2 } }),
    'series.lastObservedTime: Required value',
  ],
  [
    'an empty series is validated',
    eventWith({ series: {} }),
    'series.count: Invalid value: "": should be at least 2',
    'series.lastObservedTime: Required value',
  ],
  ['a complete series is valid', eventWith({ series: { count: 2, lastObservedTime: TIME } })],
  [
    'deprecated fields must be unset',
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
    'a deprecated source with only a host is set',
    eventWith({ deprecatedSource: { host: 'x' } }),
    'deprecatedSource: Invalid value: "": needs to be unset',
  ],
  ['an empty deprecated source is unset', eventWith({ deprecatedSource: {} })],
  [
    'regarding may be in another namespace',
    eventWith({ regarding: { kind: 'Node', namespace: 'elsewhere' } }),
  ],
  [
    'regarding must have a namespace',
    eventWith({ regarding: { kind: 'Pod' } }),
    'regarding.namespace: Invalid value: "": does not match event.namespace',
  ],
  [
    'regarding may have no namespace in an event in default',
    eventWith({ regarding: { kind: 'Node' } }, { namespace: 'default' }),
  ],
  [
    'regarding may have no namespace in an event in kube-system',
    eventWith({ regarding: { kind: 'Node' } }, { namespace: 'kube-system' }),
  ],
  [
    'regarding must have the namespace of the event when there is no eventTime',
    eventWith({ eventTime: undefined, regarding: { namespace: 'other' } }),
    'regarding.namespace: Invalid value: "other": does not match event.namespace',
    'eventTime: Required value',
  ],
  [
    'regarding must have a namespace in kube-system when there is no eventTime',
    eventWith({ eventTime: undefined, regarding: undefined }, { namespace: 'kube-system' }),
    'regarding.namespace: Invalid value: "": does not match event.namespace',
    'eventTime: Required value',
  ],
  [
    'an invalid namespace is reported once',
    eventWith({}, { namespace: 'Bad_NS' }),
    `metadata.namespace: Invalid value: "Bad_NS": ${LABEL}`,
  ],
  [
    'a namespace has a limit',
    eventWith({}, { namespace: 'x'.repeat(64) }),
    `metadata.namespace: Invalid value: "${'x'.repeat(64)}": must be no more than 63 characters`,
  ],
  [
    'an invalid finalizer is reported by both rules',
    eventWith({}, { finalizers: ['bad finalizer!'] }),
    `metadata.finalizers: Invalid value: "bad finalizer!": ${NAME_PART}`,
    'metadata.finalizers[0]: Invalid value: "bad finalizer!": name is neither a standard finalizer name nor is it fully qualified',
  ],
  [
    'an invalid name is reported',
    eventWith({}, { name: 'A' }),
    `metadata.name: Invalid value: "A": ${SUBDOMAIN}`,
  ],
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
  ['a series may be removed', changed({ series: undefined })],
  [
    'a changed series is validated',
    changed({ series: { count: 1, lastObservedTime: TIME } }),
    'series.count: Invalid value: "": should be at least 2',
  ],
  [
    'eventTime is immutable',
    changed({ eventTime: '2026-01-02T03:04:05.678902Z' }),
    'eventTime: Invalid value: "2026-01-02T03:04:05.678902Z": field is immutable',
  ],
  [
    'eventTime cannot be removed',
    changed({ eventTime: undefined }),
    'eventTime: Invalid value: null: field is immutable',
  ],
  [
    'action is immutable',
    changed({ action: 'Other' }),
    'action: Invalid value: "Other": field is immutable',
  ],
  [
    'reason is immutable',
    changed({ reason: 'Other' }),
    'reason: Invalid value: "Other": field is immutable',
  ],
  [
    'note is immutable',
    changed({ note: 'say "x"' }),
    'note: Invalid value: "say \\"x\\"": field is immutable',
  ],
  [
    'note cannot be removed',
    changed({ note: undefined }),
    'note: Invalid value: "": field is immutable',
  ],
  [
    'type is immutable',
    changed({ type: 'Warning' }),
    'type: Invalid value: "Warning": field is immutable',
  ],
  [
    'reportingController is immutable',
    changed({ reportingController: 'other' }),
    'reportingController: Invalid value: "other": field is immutable',
  ],
  [
    'reportingInstance is immutable',
    changed({ reportingInstance: 'other' }),
    'reportingInstance: Invalid value: "other": field is immutable',
  ],
  [
    'regarding is immutable',
    changed({ regarding: { kind: 'Pod', namespace: 'shop', name: '<other>' } }),
    'regarding: Invalid value: {"Kind":"Pod","Namespace":"shop","Name":"\\u003cother\\u003e","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable',
  ],
  [
    'related is immutable',
    changed({ related: { kind: 'X' } }),
    'related: Invalid value: {"Kind":"X","Namespace":"","Name":"","UID":"","APIVersion":"","ResourceVersion":"","FieldPath":""}: field is immutable',
  ],
  [
    'related cannot be removed',
    changed({ related: undefined }),
    'related: Invalid value: null: field is immutable',
  ],
  [
    'deprecatedCount is immutable',
    changed({ deprecatedCount: 9 }),
    'deprecatedCount: Invalid value: 9: field is immutable',
  ],
  [
    'deprecatedSource is immutable',
    changed({ deprecatedSource: { component: 'z' } }),
    'deprecatedSource: Invalid value: {"Component":"z","Host":""}: field is immutable',
  ],
  [
    'deprecatedFirstTimestamp is immutable',
    changed({ deprecatedFirstTimestamp: '2026-01-02T03:04:05Z' }),
    'deprecatedFirstTimestamp: Invalid value: "2026-01-02T03:04:05Z": field is immutable',
  ],
  [
    'deprecatedLastTimestamp is immutable',
    changed({ deprecatedLastTimestamp: '2026-01-02T03:04:05Z' }),
    'deprecatedLastTimestamp: Invalid value: "2026-01-02T03:04:05Z": field is immutable',
  ],
  [
    'several changed fields are reported in order',
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
    'an invalid label is reported once',
    changed({}, { labels: { 'bad!': 'label' } }),
    `metadata.labels: Invalid value: "bad!": ${NAME_PART}`,
  ],
  [
    'a changed UID is reported once',
    changed({}, { uid: 'v' }),
    'metadata.uid: Invalid value: "v": field is immutable',
  ],
  [
    'a generateName must be a valid path segment',
    changed({}, { generateName: 'a/b' }),
    'metadata.generateName: Invalid value: "a/b": may not contain \'/\'',
  ],
]

for (const [title, event, ...problems] of updated) {
  test(`updateProblems: ${title}`, () => {
    assert.deepEqual(texts(updateProblems(event, stored)), problems)
  })
}

test('updateProblems: an unchanged series is not validated again', () => {
  const old = eventWith({ series: {} })
  assert.deepEqual(updateProblems(eventWith({ series: { count: 0 } }), old), [])
})

test('updateProblems: an event without eventTime is exempt from newer validation', () => {
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

test('updateProblems: an empty structure is the same as an unset one, except for related', () => {
  const old = eventWith({ regarding: undefined }, { namespace: 'default' })
  const repeated = { ...old, regarding: {}, deprecatedSource: {}, deprecatedCount: 0 }
  assert.deepEqual(updateProblems(repeated, old), [])
  assert.deepEqual(updateProblems(old, repeated), [])
  assert.equal(updateProblems({ ...old, related: {} }, old).length, 1)
})

test('createProblems: a hundred thousand invalid labels make an error of bounded size', () => {
  const labels = Object.fromEntries(
    Array.from({ length: 100_000 }, (_, at) => [`!${at}`, `?${at}`]),
  )
  assert.equal(createProblems(eventWith({}, { labels })).length, 100)
  assert.equal(updateProblems(eventWith({}, { labels }), stored).length, 100)
})

test('createProblems: values of megabytes are truncated', () => {
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

test('event validation returns the same result for equal events', () => {
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

test('event validation accepts a valid event as an update of itself', () => {
  fc.assert(
    fc.property(validEvent, (event) => {
      assert.deepEqual(createProblems(event), [])
      assert.deepEqual(updateProblems(structuredClone(event), event), [])
    }),
  )
})
